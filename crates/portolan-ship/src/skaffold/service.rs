//! The service: states and events out of the journal. What Skaffold's dev loop can be told has no meaning for a run that
//! builds once, and is refused.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::{Stream, stream};
use portolan_engine::{Journal, ReadError, Reader};
use portolan_listen::ResponseTime;
use tonic::{Request, Response, Status, async_trait};

use super::outline::RunOutline;
use super::projection::Projection;
use super::wire;
use super::wire::skaffold_v2_service_server::SkaffoldV2Service;

/// How long a stream may go on.
const LONGEST: Duration = Duration::from_hours(24 * 7);

/// Events, as they come.
pub(super) type Events = Pin<Box<dyn Stream<Item = Result<wire::Event, Status>> + Send>>;

pub(super) struct SkaffoldService {
    journal: Journal,
    outline: RunOutline,
    /// How far the state was folded, and what it is.
    folded: Mutex<(Reader, Projection)>,
}

impl SkaffoldService {
    pub(super) fn new(journal: Journal, outline: RunOutline) -> Self {
        let folded = (journal.after(0), Projection::new(outline.clone()));
        Self {
            journal,
            outline,
            folded: Mutex::new(folded),
        }
    }

    /// Where everything stands now.
    pub(super) fn state(&self) -> Result<wire::State, Status> {
        let mut folded = self.folded.lock().unwrap_or_else(PoisonError::into_inner);
        let (reader, projection) = &mut *folded;
        loop {
            match reader.try_next() {
                Ok(Some(batch)) => {
                    for record in batch.iter() {
                        projection.apply(record);
                    }
                }
                Ok(None) => return Ok(projection.state()),
                Err(ReadError::Forgotten { oldest, .. }) => reader.seek(oldest - 1),
                Err(error) => return Err(Status::unavailable(error.to_string())),
            }
        }
    }

    /// Everything from the first event on, until the run has ended.
    pub(super) fn all_events(&self) -> Events {
        let start = Following {
            reader: self.journal.after(0),
            projection: Projection::new(self.outline.clone()),
        };
        let batches = stream::unfold(Some(start), |following| async move {
            let mut following = following?;
            match following.next().await {
                Ok(Some(events)) => Some((
                    events.into_iter().map(Ok).collect::<Vec<_>>(),
                    Some(following),
                )),
                Ok(None) => None,
                Err(status) => Some((vec![Err(status)], None)),
            }
        });
        Box::pin(futures_util::StreamExt::flat_map(batches, stream::iter))
    }
}

/// A reader of events.
struct Following {
    reader: Reader,
    projection: Projection,
}

impl Following {
    async fn next(&mut self) -> Result<Option<Vec<wire::Event>>, Status> {
        match self.reader.next().await {
            Ok(Some(batch)) => {
                let events = batch
                    .iter()
                    .flat_map(|record| self.projection.apply(record));
                Ok(Some(events.collect()))
            }
            Ok(None) => Ok(None),
            Err(ReadError::Forgotten { oldest, .. }) => {
                let message = format!("events before {oldest} are no longer kept");
                Err(Status::data_loss(message))
            }
            Err(error) => Err(Status::unavailable(error.to_string())),
        }
    }
}

/// A stream that may last longer than an ordinary answer.
fn lasting(events: Events) -> Response<Events> {
    let mut response = Response::new(events);
    response.extensions_mut().insert(ResponseTime(LONGEST));
    response
}

/// What a run that builds once cannot be told.
fn no_dev_loop() -> Status {
    Status::failed_precondition("this run is no dev loop: it builds and deploys once, by itself")
}

#[async_trait]
impl SkaffoldV2Service for SkaffoldService {
    type EventsStream = Events;
    type ApplicationLogsStream = Events;

    async fn get_state(&self, _: Request<()>) -> Result<Response<wire::State>, Status> {
        self.state().map(Response::new)
    }

    async fn events(&self, _: Request<()>) -> Result<Response<Events>, Status> {
        Ok(lasting(self.all_events()))
    }

    async fn application_logs(&self, _: Request<()>) -> Result<Response<Events>, Status> {
        // Lines of containers are events as well; a run without a dev loop follows none.
        let logs = futures_util::StreamExt::filter(self.all_events(), |event| {
            let is_log = |event: &wire::Event| {
                matches!(
                    event.event_type,
                    Some(wire::event::EventType::ApplicationLogEvent(_))
                )
            };
            std::future::ready(event.as_ref().map_or(true, is_log))
        });
        Ok(lasting(Box::pin(logs)))
    }

    async fn execute(&self, _: Request<wire::UserIntentRequest>) -> Result<Response<()>, Status> {
        Err(no_dev_loop())
    }

    async fn auto_build(&self, _: Request<wire::TriggerRequest>) -> Result<Response<()>, Status> {
        Err(no_dev_loop())
    }

    async fn auto_sync(&self, _: Request<wire::TriggerRequest>) -> Result<Response<()>, Status> {
        Err(no_dev_loop())
    }

    async fn auto_deploy(&self, _: Request<wire::TriggerRequest>) -> Result<Response<()>, Status> {
        Err(no_dev_loop())
    }

    async fn handle(&self, _: Request<wire::Event>) -> Result<Response<()>, Status> {
        Err(Status::unimplemented("events come from the run alone"))
    }
}
