//! Nodes and users by certificate: enrolment, renewal, revocation, rotation, and what each may do.

mod bed;

mod enrolment;
mod refusals;
mod revocation;
mod years;
