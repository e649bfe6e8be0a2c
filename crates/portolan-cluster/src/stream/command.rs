//! Commands in pods: input, output and exit code.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::channel::{ChannelReceiver, ChannelSender, Channels};
use super::target::TargetPod;
use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::pages::encode;

const INPUT: u8 = 0;
const OUTPUT: u8 = 1;
const ERRORS: u8 = 2;
const STATUS: u8 = 3;

/// How much input is sent at a time.
const PIECE_BYTES: usize = 32 * 1024;

/// How often a connection is used at least, so that nobody on the way takes it for dead.
const PING: Duration = Duration::from_secs(30);

/// A command in a pod.
#[derive(Debug, Clone, Copy)]
pub struct PodCommand<'a> {
    /// The container; the first one if left out.
    pub container: Option<&'a str>,
    /// The program and its arguments; no shell reads them.
    pub command: &'a [String],
}

/// What a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodOutput<'a> {
    /// A piece of its standard output.
    Stdout(&'a [u8]),
    /// A piece of its standard error.
    Stderr(&'a [u8]),
}

impl Cluster {
    /// Runs a command in a pod until it ends, and returns its exit code. Its input ends with the reader; servers before
    /// Kubernetes 1.29 cannot be told so, and a command that waits for the end of its input would not end there.
    ///
    /// If the connection breaks, the command may still run: [`ClusterError::Interrupted`]. Nothing is tried again.
    pub async fn run_in_pod(
        &self,
        pod: &TargetPod,
        command: PodCommand<'_>,
        input: Option<&mut (dyn AsyncRead + Send + Unpin)>,
        mut print: impl FnMut(PodOutput<'_>),
    ) -> Result<i32, ClusterError> {
        let path = path(pod, command, input.is_some());
        let Channels {
            mut sender,
            mut receiver,
        } = self.channels(&path).await?;
        let status = tokio::select! {
            status = receive(&mut receiver, &mut print) => status,
            () = send(&mut sender, input) => Ok(None),
        };
        // The command has ended: whether the connection ends well does not matter.
        let _ = tokio::time::timeout(Duration::from_secs(1), sender.close()).await;
        let plain = path.split('?').next().unwrap_or(&path);
        match status {
            Ok(Some(status)) => exit_code(plain, &status),
            Ok(None) => Err(interrupted(plain, "the server closed it")),
            Err(ClusterError::Unreachable { cause, .. }) => Err(interrupted(plain, &cause)),
            Err(error) => Err(error),
        }
    }
}

/// Sends the input to its end, then keeps the connection open. What cannot be sent is for the receiver to notice: a
/// command may end without having read everything.
async fn send(sender: &mut ChannelSender, input: Option<&mut (dyn AsyncRead + Send + Unpin)>) {
    let mut ping = tokio::time::interval(PING);
    ping.reset();
    let mut input = input;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = async {
            match &mut input {
                Some(input) => input.read(&mut piece).await.unwrap_or(0),
                None => std::future::pending().await,
            }
        };
        let sent = tokio::select! {
            count = read => {
                if count == 0 {
                    input = None;
                    sender.end(INPUT).await
                } else {
                    sender.send(INPUT, &piece[..count]).await
                }
            }
            _ = ping.tick() => sender.ping().await,
        };
        if sent.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Passes the output on until the command ends; `None` if the connection ended before.
async fn receive(
    receiver: &mut ChannelReceiver,
    print: &mut impl FnMut(PodOutput<'_>),
) -> Result<Option<Vec<u8>>, ClusterError> {
    while let Some((channel, bytes)) = receiver.next().await? {
        match channel {
            OUTPUT => print(PodOutput::Stdout(&bytes)),
            ERRORS => print(PodOutput::Stderr(&bytes)),
            STATUS => return Ok(Some(bytes)),
            _ => {}
        }
    }
    Ok(None)
}

/// The exit code in the status that ends a command; an error if the command did not run.
fn exit_code(path: &str, status: &[u8]) -> Result<i32, ClusterError> {
    let status: Status = serde_json::from_slice(status).map_err(|error| ClusterError::Answer {
        path: path.to_owned(),
        message: error.to_string(),
    })?;
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let causes = status.details.and_then(|details| details.causes);
    let causes = causes.unwrap_or_default();
    let code = causes
        .iter()
        .find(|cause| cause.reason.as_deref() == Some("ExitCode"));
    let code = code.and_then(|cause| cause.message.as_deref()?.parse().ok());
    code.ok_or_else(|| ClusterError::Status {
        path: path.to_owned(),
        code: status.code.map_or(500, |code| code as u16),
        message: status.message.unwrap_or_default(),
    })
}

fn interrupted(path: &str, cause: &str) -> ClusterError {
    ClusterError::Interrupted {
        path: path.to_owned(),
        cause: cause.to_owned(),
    }
}

fn path(pod: &TargetPod, command: PodCommand<'_>, has_input: bool) -> String {
    let mut path = format!(
        "/api/v1/namespaces/{}/pods/{}/exec?stdout=true&stderr=true",
        pod.namespace, pod.name
    );
    if has_input {
        path.push_str("&stdin=true");
    }
    let first = pod.containers.first().map(String::as_str);
    if let Some(container) = command.container.or(first) {
        path.push_str("&container=");
        path.push_str(&encode(container));
    }
    for word in command.command {
        path.push_str("&command=");
        path.push_str(&encode(word));
    }
    path
}
