//! The API as clients see it: requests to the router, on a store in a directory of its own.

mod bed;
mod book_files;
mod deletions;
mod events;
mod failures;
mod live;
mod objects;
mod repositories;
mod restarts;
mod rights;
mod secrets;
mod variable_files;
mod watches;
