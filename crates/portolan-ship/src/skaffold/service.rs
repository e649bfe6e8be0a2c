//! The service: states and events out of journals. What a dev loop can be told is passed on to it, and refused for a run that
//! builds once.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{Stream, stream};
use portolan_engine::{ReadError, Reader, Record};
use portolan_listen::ResponseTime;
use tokio::sync::mpsc::UnboundedReceiver;
use tonic::{Request, Response, Status, async_trait};

use super::control::{DevControl, DevStages};
use super::projection::Projection;
use super::turns::{SkaffoldTurns, Turn, TurnReader};
use super::wire;
use super::wire::skaffold_v2_service_server::SkaffoldV2Service;

/// How long a stream may go on.
const LONGEST: Duration = Duration::from_hours(24 * 7);

/// Events, as they come.
pub(super) type Events = Pin<Box<dyn Stream<Item = Result<wire::Event, Status>> + Send>>;

pub(super) struct SkaffoldService {
    turns: SkaffoldTurns,
    control: Option<Arc<DevControl>>,
    /// How far the state was folded, and what it is.
    folded: Mutex<Following>,
}

impl SkaffoldService {
    pub(super) fn new(turns: SkaffoldTurns, control: Option<Arc<DevControl>>) -> Self {
        let folded = Mutex::new(Following::new(&turns));
        Self {
            turns,
            control,
            folded,
        }
    }

    /// Where everything stands now.
    pub(super) fn state(&self) -> Result<wire::State, Status> {
        let mut folded = self.folded.lock().unwrap_or_else(PoisonError::into_inner);
        folded.catch_up()?;
        let auto = self.control.as_ref().map(|control| control.auto());
        Ok(folded.projection.state(auto.unwrap_or_default()))
    }

    /// Everything from the first event of the run on, until the session has ended.
    pub(super) fn all_events(&self) -> Events {
        let start = Following::new(&self.turns);
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

    /// The dev loop, if there is one.
    fn control(&self) -> Result<&DevControl, Status> {
        self.control.as_deref().ok_or_else(no_dev_loop)
    }

    /// Switches a stage of the dev loop on or off.
    fn set_auto(
        &self,
        stage: DevStages,
        request: Request<wire::TriggerRequest>,
    ) -> Result<Response<()>, Status> {
        let control = self.control()?;
        let state = request.into_inner().state;
        let Some(wire::trigger_state::Val::Enabled(enabled)) = state.and_then(|state| state.val)
        else {
            let message = "say whether it is on: {\"enabled\": true}";
            return Err(Status::invalid_argument(message));
        };
        if control.set_auto(stage, enabled) {
            Ok(Response::new(()))
        } else {
            let word = if enabled { "on" } else { "off" };
            Err(Status::already_exists(format!("it is {word} already")))
        }
    }
}

/// A reader of events, through one run after the other.
struct Following {
    turns: UnboundedReceiver<Turn>,
    reader: Option<TurnReader>,
    /// Reads what happens beside the runs of a dev loop.
    session: Option<Reader>,
    projection: Projection,
}

/// What a reader came to.
enum Step {
    Turn(Turn),
    Records(Vec<Record>),
    EndOfTurn,
    EndOfSession,
    Over,
}

impl Following {
    fn new(turns: &SkaffoldTurns) -> Self {
        Self {
            turns: turns.read(),
            reader: None,
            session: turns.session(),
            projection: Projection::default(),
        }
    }

    fn begin(&mut self, turn: Turn) {
        self.reader = Some(turn.reader());
        self.projection.follow(turn.outline, turn.iteration);
    }

    /// The next events; `None` when the session is over.
    async fn next(&mut self) -> Result<Option<Vec<wire::Event>>, Status> {
        loop {
            match self.step().await {
                Ok(Step::Turn(turn)) => self.begin(turn),
                Ok(Step::Records(records)) => {
                    let events = records
                        .iter()
                        .flat_map(|record| self.projection.apply(record));
                    return Ok(Some(events.collect()));
                }
                Ok(Step::EndOfTurn) => self.reader = None,
                Ok(Step::EndOfSession) => self.session = None,
                Ok(Step::Over) => return Ok(None),
                Err(ReadError::Forgotten { oldest, .. }) => {
                    let message = format!("events before {oldest} are no longer kept");
                    return Err(Status::data_loss(message));
                }
                Err(error) => return Err(Status::unavailable(error.to_string())),
            }
        }
    }

    /// Waits for what comes first; dropping the others loses nothing.
    async fn step(&mut self) -> Result<Step, ReadError> {
        let (turns, reader) = (&mut self.turns, &mut self.reader);
        let of_turns = async {
            match reader {
                Some(reader) => Ok(reader.next().await?.map_or(Step::EndOfTurn, Step::Records)),
                None => Ok(turns.recv().await.map_or(Step::Over, Step::Turn)),
            }
        };
        let session = &mut self.session;
        let beside = async {
            match session {
                Some(session) => Ok(session.next().await?.map_or(Step::EndOfSession, |batch| {
                    Step::Records(batch.iter().cloned().collect())
                })),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            step = of_turns => step,
            step = beside => step,
        }
    }

    /// Takes everything in that has happened.
    fn catch_up(&mut self) -> Result<(), Status> {
        if let Some(session) = &mut self.session {
            // What is no longer kept is told by nobody; the next events are.
            while let Ok(Some(batch)) = session.try_next() {
                for record in batch.iter() {
                    self.projection.apply(record);
                }
            }
        }
        loop {
            if let Some(reader) = &mut self.reader {
                match reader.try_next() {
                    Ok(Some(batch)) => {
                        for record in &batch {
                            self.projection.apply(record);
                        }
                        continue;
                    }
                    Ok(None) => {}
                    Err(ReadError::Forgotten { oldest, .. }) => {
                        reader.seek(oldest - 1);
                        continue;
                    }
                    Err(error) => return Err(Status::unavailable(error.to_string())),
                }
            }
            // A run begins when the one before is over, so all of that has been read.
            match self.turns.try_recv() {
                Ok(turn) => self.begin(turn),
                Err(_) => return Ok(()),
            }
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

    async fn execute(
        &self,
        request: Request<wire::UserIntentRequest>,
    ) -> Result<Response<()>, Status> {
        let control = self.control()?;
        let intent = request.into_inner().intent.unwrap_or_default();
        let stages = DevStages {
            build: intent.build || intent.devloop,
            sync: intent.sync || intent.devloop,
            deploy: intent.deploy || intent.devloop,
        };
        if stages.is_empty() {
            let message = "say what is done: {\"build\": true}, sync, deploy or devloop";
            return Err(Status::invalid_argument(message));
        }
        control.ask(stages);
        Ok(Response::new(()))
    }

    async fn auto_build(
        &self,
        request: Request<wire::TriggerRequest>,
    ) -> Result<Response<()>, Status> {
        let stage = DevStages {
            build: true,
            ..DevStages::default()
        };
        self.set_auto(stage, request)
    }

    async fn auto_sync(
        &self,
        request: Request<wire::TriggerRequest>,
    ) -> Result<Response<()>, Status> {
        let stage = DevStages {
            sync: true,
            ..DevStages::default()
        };
        self.set_auto(stage, request)
    }

    async fn auto_deploy(
        &self,
        request: Request<wire::TriggerRequest>,
    ) -> Result<Response<()>, Status> {
        let stage = DevStages {
            deploy: true,
            ..DevStages::default()
        };
        self.set_auto(stage, request)
    }

    async fn handle(&self, _: Request<wire::Event>) -> Result<Response<()>, Status> {
        Err(Status::unimplemented("events come from the run alone"))
    }
}
