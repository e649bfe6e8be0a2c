"""What Schemathesis leaves out: a watch goes on for an hour."""

import schemathesis


@schemathesis.hook
def map_query(context, query):
    if query:
        query.pop("watch", None)
    return query
