//! One piece of work: what it does, how it is limited, whether it is retried.

use std::any::{Any, type_name};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{Context, Failure, Retry};

/// Which limit a unit counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Computes; runs on the blocking pool.
    Cpu,
    /// Waits for files, the network or other units.
    Io,
    /// Runs a child process.
    Process,
}

/// How many units of each class run at the same time; at least one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Synchronous units and [`Context::compute`].
    pub cpu: usize,
    /// Units made by [`Unit::io`].
    pub io: usize,
    /// Units made by [`Unit::process`].
    pub process: usize,
}

/// A piece of work that has not been started.
pub struct Unit {
    pub(crate) work: Work,
    pub(crate) retry: Option<Retry>,
    pub(crate) is_lazy: bool,
    pub(crate) is_graceful: bool,
}

/// The end of one attempt.
pub(crate) type Attempt = Result<Output, Failure>;

pub(crate) type AttemptFuture = Pin<Box<dyn Future<Output = Attempt> + Send>>;

type SyncOnce = dyn FnOnce(&Context) -> Attempt + Send;
type SyncAgain = dyn Fn(&Context) -> Attempt + Send + Sync;
type AsyncOnce = dyn FnOnce(Context) -> AttemptFuture + Send;
type AsyncAgain = dyn Fn(Context) -> AttemptFuture + Send + Sync;

pub(crate) enum Work {
    Sync(Call<SyncOnce, SyncAgain>),
    Async(Class, Call<AsyncOnce, AsyncAgain>),
}

/// A function that can be called once, or again.
pub(crate) enum Call<Once: ?Sized, Again: ?Sized> {
    Once(Box<Once>),
    Again(Arc<Again>),
}

/// What a unit made, of whatever type.
#[derive(Clone)]
pub struct Output {
    value: Arc<dyn Any + Send + Sync>,
    type_name: &'static str,
}

// === impl Unit ===

impl Unit {
    /// A synchronous unit for work that computes. It reads what it needs with [`Context::need`].
    pub fn cpu<T, F>(work: F) -> Self
    where
        F: FnOnce(&Context) -> Result<T, Failure> + Send + 'static,
        T: Send + Sync + 'static,
    {
        let work = move |cx: &Context| work(cx).map(Output::new);
        Self::new(Work::Sync(Call::Once(Box::new(work))))
    }

    /// An asynchronous unit for work that waits.
    pub fn io<T, F, R>(work: F) -> Self
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Send + Sync + 'static,
    {
        Self::async_once(Class::Io, work)
    }

    /// An asynchronous unit that runs a child process.
    pub fn process<T, F, R>(work: F) -> Self
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Send + Sync + 'static,
    {
        Self::async_once(Class::Process, work)
    }

    /// Starts the unit only when another one needs it or asks for its output.
    #[must_use]
    pub fn lazy(self) -> Self {
        Self {
            is_lazy: true,
            ..self
        }
    }

    /// Leaves an asynchronous unit running when it is cancelled, so that it can clean up: it watches
    /// [`Context::cancelled`] and ends by itself. Other asynchronous units are dropped where they wait.
    #[must_use]
    pub fn graceful(self) -> Self {
        Self {
            is_graceful: true,
            ..self
        }
    }

    fn async_once<T, F, R>(class: Class, work: F) -> Self
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Send + Sync + 'static,
    {
        let work = move |cx: Context| boxed(work(cx));
        Self::new(Work::Async(class, Call::Once(Box::new(work))))
    }

    fn new(work: Work) -> Self {
        Self {
            work,
            retry: None,
            is_lazy: false,
            is_graceful: false,
        }
    }

    fn again(retry: Retry, work: Work) -> Self {
        Self {
            retry: Some(retry),
            ..Self::new(work)
        }
    }
}

/// Units that are tried again when they fail; their work can be called more than once.
impl Retry {
    /// A synchronous unit for work that computes, like [`Unit::cpu`].
    pub fn cpu<T, F>(self, work: F) -> Unit
    where
        F: Fn(&Context) -> Result<T, Failure> + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let work = move |cx: &Context| work(cx).map(Output::new);
        Unit::again(self, Work::Sync(Call::Again(Arc::new(work))))
    }

    /// An asynchronous unit for work that waits, like [`Unit::io`].
    pub fn io<T, F, R>(self, work: F) -> Unit
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Send + Sync + 'static,
    {
        let work = move |cx: Context| boxed(work(cx));
        Unit::again(self, Work::Async(Class::Io, Call::Again(Arc::new(work))))
    }

    /// An asynchronous unit that runs a child process, like [`Unit::process`].
    pub fn process<T, F, R>(self, work: F) -> Unit
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Send + Sync + 'static,
    {
        let work = move |cx: Context| boxed(work(cx));
        Unit::again(
            self,
            Work::Async(Class::Process, Call::Again(Arc::new(work))),
        )
    }
}

fn boxed<T, R>(future: R) -> AttemptFuture
where
    R: Future<Output = Result<T, Failure>> + Send + 'static,
    T: Send + Sync + 'static,
{
    Box::pin(async move { future.await.map(Output::new) })
}

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unit")
            .field("class", &self.work.class())
            .field("retry", &self.retry)
            .field("is_lazy", &self.is_lazy)
            .finish_non_exhaustive()
    }
}

// === impl Work ===

impl Work {
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Sync(_) => Class::Cpu,
            Self::Async(class, _) => *class,
        }
    }

    /// The same work for another attempt, if it can be called again.
    pub(crate) fn again(&self) -> Option<Self> {
        match self {
            Self::Sync(Call::Again(work)) => Some(Self::Sync(Call::Again(Arc::clone(work)))),
            Self::Async(class, Call::Again(work)) => {
                Some(Self::Async(*class, Call::Again(Arc::clone(work))))
            }
            Self::Sync(Call::Once(_)) | Self::Async(_, Call::Once(_)) => None,
        }
    }
}

// === impl Output ===

impl Output {
    fn new<T: Send + Sync + 'static>(value: T) -> Self {
        Self {
            value: Arc::new(value),
            type_name: type_name::<T>(),
        }
    }

    /// The output as the type it has.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.value).downcast().ok()
    }

    /// The name of the type it has.
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Output({})", self.type_name)
    }
}

// === impl Limits ===

/// As many computing units as there are cores, 64 that wait, and as many processes as cores.
impl Default for Limits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            cpu: cores,
            io: 64,
            process: cores,
        }
    }
}

impl Limits {
    pub(crate) fn of(&self, class: Class) -> usize {
        match class {
            Class::Cpu => self.cpu,
            Class::Io => self.io,
            Class::Process => self.process,
        }
        .max(1)
    }
}
