//! `Node`: a server that an agent runs on.

use portolan_object::NameRule;

use crate::definition::{Column, KindDefinition, nothing_more};
use crate::rule::{FieldDemand, FieldRule, FixedValue};

pub(super) static DEFINITION: KindDefinition = KindDefinition {
    name: "Node",
    plural: "nodes",
    short_names: &["no"],
    is_namespaced: false,
    spec: "NodeSpec",
    status: Some("NodeStatus"),
    names: NameRule::Subdomain,
    rules: &[
        FieldRule {
            path: "network.fqdn",
            demand: FieldDemand::Name(NameRule::Subdomain),
        },
        FieldRule {
            path: "network.addresses",
            demand: FieldDemand::Items(64),
        },
        FieldRule {
            path: "network.daemonPorts",
            demand: FieldDemand::Items(64),
        },
        FieldRule {
            path: "network.daemonPorts[].name",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "network.daemonPorts[].name",
            demand: FieldDemand::Name(NameRule::Label),
        },
        FieldRule {
            path: "network.daemonPorts[].port",
            demand: FieldDemand::Required,
        },
        FieldRule {
            path: "network.daemonPorts[].port",
            demand: FieldDemand::Between(1, 65_535),
        },
        FieldRule {
            path: "network.daemonPorts[].protocol",
            demand: FieldDemand::Default(FixedValue::Text("tcp")),
        },
    ],
    check: nothing_more,
    columns: &[
        Column::new("STATE", "status.state"),
        Column::new("FQDN", "spec.network.fqdn"),
        Column::wide("ADDRESSES", "spec.network.addresses"),
        Column::wide("EPOCH", "status.epoch"),
        Column::wide("CERTIFICATE ENDS", "status.certificateExpires"),
    ],
    selectable: &["status.state", "spec.network.fqdn"],
};
