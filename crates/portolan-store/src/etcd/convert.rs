//! Between our types and etcd's messages, and what etcd's errors mean.

use bytes::Bytes;
use tonic::{Code, Status};

use super::wire;
use crate::{
    Compare, CompareField, Event, LeaseId, Outcome, Page, Range, Record, Revision, Span,
    StoreError, Transaction, Write,
};

/// A range as etcd writes it: one key has no end, and an end of a zero byte means no end.
pub(super) fn bounds(span: &Span) -> (Bytes, Bytes) {
    let end = span.end.clone().unwrap_or(Bytes::from_static(&[0]));
    (span.start.clone(), end)
}

pub(super) fn range_request(range: &Range) -> wire::RangeRequest {
    let (key, range_end) = bounds(&range.span);
    wire::RangeRequest {
        key,
        range_end,
        limit: range.limit as i64,
        revision: range.at.unwrap_or(0) as i64,
        serializable: false,
    }
}

pub(super) fn txn_request(transaction: &Transaction) -> wire::TxnRequest {
    let reads = |ranges: &[Range]| -> Vec<wire::RequestOp> { ranges.iter().map(read_op).collect() };
    let mut success: Vec<wire::RequestOp> = transaction.writes.iter().map(write_op).collect();
    success.extend(reads(&transaction.reads));
    wire::TxnRequest {
        compare: transaction.compares.iter().map(compare).collect(),
        success,
        failure: reads(&transaction.otherwise),
    }
}

fn read_op(range: &Range) -> wire::RequestOp {
    request(wire::request_op::Request::RequestRange(range_request(
        range,
    )))
}

fn write_op(write: &Write) -> wire::RequestOp {
    request(match write {
        Write::Put { key, value, lease } => {
            wire::request_op::Request::RequestPut(wire::PutRequest {
                key: key.clone(),
                value: value.clone(),
                lease: lease.map_or(0, LeaseId::number),
            })
        }
        Write::Delete { key } => {
            wire::request_op::Request::RequestDeleteRange(wire::DeleteRangeRequest {
                key: key.clone(),
                range_end: Bytes::new(),
            })
        }
    })
}

fn request(request: wire::request_op::Request) -> wire::RequestOp {
    wire::RequestOp {
        request: Some(request),
    }
}

fn compare(compare: &Compare) -> wire::Compare {
    use wire::compare::{CompareResult, CompareTarget, TargetUnion};
    let revision = compare.revision as i64;
    let (target, target_union) = match compare.field {
        CompareField::Mod => (CompareTarget::Mod, TargetUnion::ModRevision(revision)),
        CompareField::Create => (CompareTarget::Create, TargetUnion::CreateRevision(revision)),
    };
    wire::Compare {
        result: CompareResult::Equal.into(),
        target: target.into(),
        key: compare.key.clone(),
        target_union: Some(target_union),
    }
}

pub(super) fn outcome(response: wire::TxnResponse) -> Result<Outcome, StoreError> {
    let revision = revision(response.header.as_ref())?;
    let pages = response
        .responses
        .into_iter()
        .filter_map(|part| match part.response {
            Some(wire::response_op::Response::ResponseRange(page)) => Some(page),
            _ => None,
        });
    let pages = pages
        .map(|part| page(part, Some(revision)))
        .collect::<Result<_, _>>()?;
    Ok(Outcome {
        succeeded: response.succeeded,
        revision,
        pages,
    })
}

/// A page; inside of a transaction its revision is that of the transaction.
pub(super) fn page(
    response: wire::RangeResponse,
    at: Option<Revision>,
) -> Result<Page, StoreError> {
    let own = || revision(response.header.as_ref());
    let revision = at.map_or_else(own, Ok)?;
    Ok(Page {
        records: response.kvs.into_iter().map(record).collect(),
        more: response.more,
        revision,
    })
}

pub(super) fn revision(header: Option<&wire::ResponseHeader>) -> Result<Revision, StoreError> {
    header
        .map(|header| header.revision as u64)
        .ok_or_else(|| StoreError::Unavailable {
            detail: "etcd answers without a header".to_owned(),
        })
}

fn record(kv: wire::KeyValue) -> Record {
    Record {
        key: kv.key,
        value: kv.value,
        create_revision: kv.create_revision as u64,
        mod_revision: kv.mod_revision as u64,
        version: kv.version as u64,
        lease: LeaseId::new(kv.lease),
    }
}

/// A change; `None` for a message without a key, which etcd does not send.
pub(super) fn event(event: wire::Event) -> Option<Event> {
    let is_delete = event.r#type() == wire::event::EventType::Delete;
    let kv = event.kv?;
    if !is_delete {
        return Some(Event::Put(record(kv)));
    }
    Some(Event::Delete {
        key: kv.key,
        mod_revision: kv.mod_revision as u64,
    })
}

/// What an error means for a read, or for a write that did not happen.
///
/// A write is told as unknown unless etcd says plainly that it refused it: any other status may come from a connection that
/// broke after the write was sent.
pub(super) fn error(status: &Status, asked: Asked) -> StoreError {
    let detail = status.message().to_owned();
    match status.code() {
        Code::OutOfRange if detail.contains("compacted") => StoreError::Compacted {
            asked: asked.revision,
            oldest: 0,
        },
        Code::OutOfRange if detail.contains("future revision") => StoreError::Future {
            asked: asked.revision,
            current: 0,
        },
        Code::NotFound if detail.contains("lease not found") => match asked.lease {
            Some(lease) => StoreError::NoLease { lease },
            None => StoreError::Unavailable { detail },
        },
        Code::ResourceExhausted if detail.contains("space exceeded") => StoreError::Full { detail },
        // The queue of etcd is full: it has not taken the request.
        Code::ResourceExhausted if detail.contains("too many requests") => {
            StoreError::Unavailable { detail }
        }
        // A login that is not good is an invalid argument to etcd.
        Code::Unauthenticated
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::InvalidArgument => StoreError::Denied { detail },
        code if asked.is_write => StoreError::Unknown {
            operation: None,
            detail: format!("{code:?}: {detail}"),
        },
        code => StoreError::Unavailable {
            detail: format!("{code:?}: {detail}"),
        },
    }
}

/// What a failed call was about.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked {
    pub(super) is_write: bool,
    pub(super) revision: Revision,
    pub(super) lease: Option<LeaseId>,
}

/// Whether the token of a login is no longer good. The call had no effect then.
pub(super) fn is_old_token(status: &Status) -> bool {
    status.code() == Code::Unauthenticated && status.message().contains("invalid auth token")
}
