"""A client of the API over gRPC that knows nothing but the address: everything else comes by reflection.

Prints one JSON line for each step. Arguments: address, file of authorities, file of the token, and, for a node, the files of its
certificate and key and its name.
"""

import json
import sys

import grpc
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.json_format import MessageToDict
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

SERVICE = "portolan.v1alpha.Objects"
TIMEOUT = 60


def read(path):
    with open(path, "rb") as file:
        return file.read()


def say(**line):
    print(json.dumps(line), flush=True)


address, authorities, token_file, *node = sys.argv[1:]
token = read(token_file).decode().strip()
channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(read(authorities)))
database = ProtoReflectionDescriptorDatabase(channel)
pool = descriptor_pool.DescriptorPool(database)
say(services=sorted(database.get_services()))


def message(message_name, /, **fields):
    found = pool.FindMessageTypeByName(f"portolan.v1alpha.{message_name}")
    return message_factory.GetMessageClass(found)(**fields)


def call(method, request, channel=channel, token=token):
    described = pool.FindServiceByName(SERVICE).FindMethodByName(method)
    answer = message_factory.GetMessageClass(described.output_type)
    kind = channel.unary_stream if described.server_streaming else channel.unary_unary
    stub = kind(
        f"/{SERVICE}/{method}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=answer.FromString,
    )
    metadata = [("authorization", f"Bearer {token}")] if token else []
    return stub(request, metadata=metadata, timeout=TIMEOUT)


def refused(method, request, **options):
    try:
        call(method, request, **options)
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def variable(region):
    spec = message("VariableSpec")
    spec.values["region"].text = region
    made = message("Object", kind="Variable")
    made.metadata.name, made.metadata.namespace = "region", "default"
    made.spec.Pack(spec)
    return made


one = {"kind": "Variable", "namespace": "default", "name": "region"}
created = call("Create", message("WriteRequest", object=variable("north")))
say(created=created.metadata.generation, version=bool(created.metadata.resource_version))
say(again=refused("Create", message("WriteRequest", object=variable("north"))))
say(no_version=refused("Update", message("WriteRequest", object=variable("south"))))
applied = call("Apply", message("WriteRequest", object=variable("south")))
say(applied=applied.metadata.generation)
created.spec.CopyFrom(applied.spec)
say(stale=refused("Update", message("WriteRequest", object=created)))
got = call("Get", message("GetRequest", **one))
spec = message("VariableSpec")
say(unpacked=got.spec.Unpack(spec), region=spec.values["region"].text)
say(listed=[item.metadata.name for item in call("List", message("ListRequest", kind="Variable")).items])
say(missing=refused("Get", message("GetRequest", kind="Variable", namespace="default", name="nothing")))
say(unknown_kind=refused("Get", message("GetRequest", kind="Lamp", name="x")))
say(nobody=refused("Get", message("GetRequest", **one), token=None))
say(wrong_token=refused("Get", message("GetRequest", **one), token="ptl_00_11"))

watch = call("Watch", message("WatchRequest", kind="Variable", namespace="default"))
seen = [next(watch).type, next(watch).type]
call("Delete", message("DeleteRequest", **one))
for event in watch:
    seen.append(event.type)
    if event.type == "DELETED":
        break
watch.cancel()
say(watched=seen)

health = channel.unary_unary("/grpc.health.v1.Health/Check")
say(health=health(b"", timeout=TIMEOUT).hex())

if node:
    certificate, key, name = node
    credentials = grpc.ssl_channel_credentials(read(authorities), read(key), read(certificate))
    mutual = grpc.secure_channel(address, credentials)
    own = call("Get", message("GetRequest", kind="Node", name=name), channel=mutual, token=None)
    say(node=MessageToDict(own.metadata)["name"])
    other = message("GetRequest", kind="Node", name="other")
    say(other_node=refused("Get", other, channel=mutual, token=None))
    say(both=refused("Get", other, channel=mutual))
