//! Nodes and users by certificate: enrolment, renewal, revocation, rotation, and what each may do.

mod bed;

mod enrolment;
mod grpc;
mod hostile;
mod refusals;
mod revocation;
mod schemathesis;
mod years;
