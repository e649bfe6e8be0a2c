//! The state of an exporter as a type, so *not scanned yet* is never confused with *nothing found*.

/// Where an exporter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No scan has ended well yet, and none runs.
    Empty,
    /// A scan runs; the data are those of the last good one, if there was one.
    Scanning,
    /// The last scan ended well.
    Ready,
    /// The last scan failed; the data are those of the last good one, if there was one.
    Failed,
}

impl State {
    /// Every state.
    pub(crate) const ALL: [Self; 4] = [Self::Empty, Self::Scanning, Self::Ready, Self::Failed];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Scanning => "scanning",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }
}
