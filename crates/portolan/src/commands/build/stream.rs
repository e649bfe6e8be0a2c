//! Writes what is rendered while the rest is still being rendered.
//!
//! ```text
//! cluster ──EmitterOutput──▶ WriteQueue ──▶ thread that writes one cluster after the other
//! ```

use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, SendTimeoutError, Sender, bounded, unbounded};
use portolan_flux::OutputSink;
use portolan_object::KindNames;
use portolan_review::{OwnerOutput, RenderedRepository};

use super::Job;
use super::write::Writer;
use crate::error::CommandError;

/// How many owners may wait for the writer. Rendering waits for a slow reader, so that memory does not grow.
const MAX_QUEUED: usize = 4;

/// How long a thread of the runtime's waits for the writer before others may use it. A writer that is at work takes the
/// next one sooner, and each thread that is started meanwhile would take memory of its own.
const PATIENCE: Duration = Duration::from_millis(10);

/// Leads to the writer.
struct WriteQueue(Sender<OwnerOutput>);

impl<'a> Job<'a> {
    /// Renders, and writes what is ready meanwhile.
    pub(super) fn streamed(&self) -> Result<RenderedRepository, CommandError> {
        let (clusters, queue) = unbounded();
        let with_provenance = self.args.write.provenance;
        let token = self.app.cancellation()?.child_token();
        let (rendered, writer) = thread::scope(|scope| {
            // Nobody wants what cannot be written: a pipe that was closed ends the rendering.
            let stop = token.clone();
            let writing =
                scope.spawn(move || self.write_streams(&queue).inspect_err(|_| stop.cancel()));
            let sink_for = move |cluster: Option<&str>| -> OutputSink {
                let (queue, stream) = WriteQueue::new(cluster.is_some());
                // A writer that has given up wants nothing more.
                let _ = clusters.send((cluster.map(str::to_owned), stream));
                Box::new(move |given| queue.send(OwnerOutput::new(given, with_provenance)))
            };
            let (repository, demand) = (&self.args.repository, self.selection.demand());
            let rendered = repository.render_streamed(&demand, sink_for, &token, self.app);
            let written = writing.join();
            let writer = written.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok::<_, CommandError>((rendered?, writer))
        })?;
        let (writer, count) = writer;
        if count == 0 && !self.selection.objects.is_everything() {
            // What was written is gone; to say what is there instead, all of it is needed again.
            self.render()?;
        }
        self.check(&rendered)?;
        // Without a cluster there was nothing to write, not even an empty list.
        writer.map_or(Ok(()), Writer::finish)?;
        Ok(rendered)
    }

    /// Writes one cluster after the other, each as it becomes ready; returns how many objects that were.
    fn write_streams(
        &self,
        queue: &Receiver<(Option<String>, Receiver<OwnerOutput>)>,
    ) -> Result<(Option<Writer<'a>>, usize), CommandError> {
        let kinds = KindNames::default();
        let mut writer = None;
        let mut count = 0;
        for (cluster, stream) in queue {
            let writer =
                writer.get_or_insert_with(|| Writer::new(&self.args.write, &self.app.printer));
            for output in stream {
                if let Some(selected) = self.select(cluster.as_deref(), output, &kinds, None) {
                    count += selected.count();
                    writer.write(&selected)?;
                }
            }
        }
        Ok((writer, count))
    }
}

impl WriteQueue {
    /// A queue to the writer; `several` says whether there are other clusters: they are written one after the other, so
    /// those behind the first must not wait.
    fn new(several: bool) -> (Self, Receiver<OwnerOutput>) {
        let (queue, stream) = if several {
            unbounded()
        } else {
            bounded(MAX_QUEUED)
        };
        (Self(queue), stream)
    }

    /// Hands something to the writer, who may have given up.
    fn send(&self, output: OwnerOutput) {
        if let Err(SendTimeoutError::Timeout(output)) = self.0.send_timeout(output, PATIENCE) {
            // Others may use this thread of the runtime's while a slow reader is waited for.
            _ = tokio::task::block_in_place(|| self.0.send(output));
        }
    }
}
