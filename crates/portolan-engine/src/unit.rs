//! One piece of work: what it does, how it is limited, whether it is retried.

use std::any::{Any, type_name};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Weak};

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

/// A piece of work that has not been started and makes a `T`.
pub struct Unit<T> {
    pub(crate) task: Task,
    output: PhantomData<fn() -> T>,
}

/// A unit as the graph holds it, whatever it makes.
pub(crate) struct Task {
    pub(crate) work: Work,
    pub(crate) retry: Option<Retry>,
    pub(crate) is_lazy: bool,
    pub(crate) is_graceful: bool,
    pub(crate) is_transient: bool,
    pub(crate) is_repeatable: bool,
    /// How many places of its class it takes while it runs.
    pub(crate) weight: usize,
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
    value: Held,
    type_name: &'static str,
}

/// An output that is kept, or one that others may still hold.
#[derive(Clone)]
enum Held {
    Kept(Arc<dyn Any + Send + Sync>),
    Released(Weak<dyn Any + Send + Sync>),
}

// === impl Unit ===

impl<T: Send + Sync + 'static> Unit<T> {
    /// A synchronous unit for work that computes. It reads what it needs with [`Context::need`].
    pub fn cpu<F>(work: F) -> Self
    where
        F: FnOnce(&Context) -> Result<T, Failure> + Send + 'static,
    {
        let work = move |cx: &Context| work(cx).map(Output::new);
        Self::new(Work::Sync(Call::Once(Box::new(work))))
    }

    /// An asynchronous unit for work that waits.
    pub fn io<F, R>(work: F) -> Self
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        Self::async_once(Class::Io, work)
    }

    /// An asynchronous unit that runs a child process.
    pub fn process<F, R>(work: F) -> Self
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        Self::async_once(Class::Process, work)
    }

    /// Starts the unit only when another one needs it or asks for its output.
    #[must_use]
    pub fn lazy(mut self) -> Self {
        self.task.is_lazy = true;
        self
    }

    /// Lets go of the output as soon as every unit that names this one in its needs has ended and everybody who waits
    /// for the output has it; at least one must have been there.
    ///
    /// For large outputs with known readers. Whoever asks later gets the output while somebody else still holds it, and
    /// then [`crate::WaitError::Released`]; the report has it on the same terms.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.task.is_transient = true;
        self
    }

    /// Leaves an asynchronous unit running when it is cancelled, so that it can clean up: it watches
    /// [`Context::cancelled`] and ends by itself. Other asynchronous units are dropped where they wait.
    #[must_use]
    pub fn graceful(mut self) -> Self {
        self.task.is_graceful = true;
        self
    }

    /// Makes an asynchronous unit take so many places of its class, or all of them if there are fewer. For work that
    /// takes as much of the machine as several others.
    #[must_use]
    pub fn weighing(mut self, places: usize) -> Self {
        self.task.weight = places.max(1);
        self
    }

    /// Keeps the work of a unit whose attempts can be repeated, so that it can be queued again after it failed:
    /// [`crate::Canceller::retry_unit`].
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.task.is_repeatable = true;
        self
    }

    fn async_once<F, R>(class: Class, work: F) -> Self
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let work = move |cx: Context| boxed(work(cx));
        Self::new(Work::Async(class, Call::Once(Box::new(work))))
    }

    fn new(work: Work) -> Self {
        Self {
            task: Task {
                work,
                retry: None,
                is_lazy: false,
                is_graceful: false,
                is_transient: false,
                is_repeatable: false,
                weight: 1,
            },
            output: PhantomData,
        }
    }

    fn again(retry: Retry, work: Work) -> Self {
        let mut unit = Self::new(work);
        unit.task.retry = Some(retry);
        unit
    }
}

/// Units that are tried again when they fail; their work can be called more than once.
impl Retry {
    /// A synchronous unit for work that computes, like [`Unit::cpu`].
    pub fn cpu<T, F>(self, work: F) -> Unit<T>
    where
        F: Fn(&Context) -> Result<T, Failure> + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let work = move |cx: &Context| work(cx).map(Output::new);
        Unit::again(self, Work::Sync(Call::Again(Arc::new(work))))
    }

    /// An asynchronous unit for work that waits, like [`Unit::io`].
    pub fn io<T, F, R>(self, work: F) -> Unit<T>
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Send + Sync + 'static,
    {
        let work = move |cx: Context| boxed(work(cx));
        Unit::again(self, Work::Async(Class::Io, Call::Again(Arc::new(work))))
    }

    /// An asynchronous unit that runs a child process, like [`Unit::process`].
    pub fn process<T, F, R>(self, work: F) -> Unit<T>
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

impl<T> fmt::Debug for Unit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unit")
            .field("class", &self.task.work.class())
            .field("retry", &self.task.retry)
            .field("is_lazy", &self.task.is_lazy)
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
            value: Held::Kept(Arc::new(value)),
            type_name: type_name::<T>(),
        }
    }

    /// The output as the type it has; `None` if it is of another type, or was let go and nobody holds it any more.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.value()?.downcast().ok()
    }

    /// The output for somebody to hold; `None` if it was let go and nobody holds it any more.
    pub(crate) fn held(&self) -> Option<Self> {
        Some(Self {
            value: Held::Kept(self.value()?),
            type_name: self.type_name,
        })
    }

    /// Keeps it from now on only as long as others do; returns what was kept.
    pub(crate) fn release(&mut self) -> Option<Self> {
        let Held::Kept(value) = &self.value else {
            return None;
        };
        let released = Self {
            value: Held::Released(Arc::downgrade(value)),
            type_name: self.type_name,
        };
        Some(std::mem::replace(self, released))
    }

    fn value(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        match &self.value {
            Held::Kept(value) => Some(Arc::clone(value)),
            Held::Released(value) => value.upgrade(),
        }
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
