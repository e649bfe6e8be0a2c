//! The logs of all pods that run a project's images, each followed by a task of its own.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use portolan_cluster::{
    Cache, CacheOptions, Cluster, LogEvent, PodLogOptions, Resource, TargetPod,
};
use portolan_engine::with_causes;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::event::{DevEvent, DevEvents};

/// So many logs are followed at the same time; of the others it is told that they are not.
const MAX_LOGS: usize = 100;

/// Follows logs of a namespace for as long as it is polled.
pub(super) async fn follow_logs(
    cluster: Cluster,
    namespace: String,
    repositories: Arc<[String]>,
    events: DevEvents,
) -> Infallible {
    let pods = Resource::in_namespaces("v1", "Pod", "pods");
    let options = CacheOptions {
        namespace: Some(namespace),
        ..CacheOptions::default()
    };
    let cache = Cache::new(pods, options);
    let changed = Notify::new();
    let mut logs = FollowedLogs {
        cluster: cluster.clone(),
        repositories,
        events,
        began: Instant::now(),
        known: BTreeSet::new(),
        is_full: false,
        tasks: JoinSet::new(),
    };
    let look = async {
        loop {
            changed.notified().await;
            for pod in cache.all() {
                logs.add(&TargetPod::of(&pod));
            }
        }
    };
    tokio::select! {
        never = cache.follow(&cluster, |_| changed.notify_one()) => never,
        never = look => never,
    }
}

struct FollowedLogs {
    cluster: Cluster,
    repositories: Arc<[String]>,
    events: DevEvents,
    began: Instant,
    /// The containers that are or were followed, by the uid of their pod.
    known: BTreeSet<(String, String)>,
    /// Whether it was told that there are too many.
    is_full: bool,
    tasks: JoinSet<()>,
}

impl FollowedLogs {
    fn add(&mut self, pod: &TargetPod) {
        // The log of a pod that is not on a node yet cannot be asked for.
        if !pod.is_placed || pod.is_ending {
            return;
        }
        while self.tasks.try_join_next().is_some() {}
        for (container, image) in pod.containers.iter().zip(&pod.images) {
            let key = (pod.uid.clone(), container.clone());
            let is_ours = self.repositories.iter().any(|it| is_of(image, it));
            if !is_ours || self.known.contains(&key) {
                continue;
            }
            if self.tasks.len() >= MAX_LOGS {
                self.tell_full(pod, container);
                continue;
            }
            self.known.insert(key);
            self.start(pod, container);
        }
    }

    fn start(&mut self, pod: &TargetPod, container: &str) {
        let options = PodLogOptions {
            container: Some(container.to_owned()),
            follow: true,
            // What a pod said before the session is no news.
            since: Some(self.began.elapsed() + Duration::from_secs(1)),
            ..PodLogOptions::default()
        };
        let mut log = self.cluster.pod_log(pod, options);
        let (pod, container) = (pod.name.clone(), container.to_owned());
        let events = self.events.clone();
        self.tasks.spawn(async move {
            loop {
                let (pod, container) = (pod.clone(), container.clone());
                let event = match log.next().await {
                    Ok(None) => return,
                    Ok(Some(LogEvent::Line(line))) => DevEvent::Log {
                        pod,
                        container,
                        line: String::from_utf8_lossy(&line).into_owned(),
                    },
                    Ok(Some(LogEvent::Gap(why))) => DevEvent::LogTrouble {
                        pod,
                        container,
                        why: format!("lines may be missing here: {why}"),
                    },
                    Err(error) => {
                        let why = with_causes(&error);
                        let event = DevEvent::LogTrouble {
                            pod,
                            container,
                            why,
                        };
                        events.send(event).await;
                        return;
                    }
                };
                events.send(event).await;
            }
        });
    }

    fn tell_full(&mut self, pod: &TargetPod, container: &str) {
        if !std::mem::replace(&mut self.is_full, true) {
            self.events.tell(DevEvent::LogTrouble {
                pod: pod.name.clone(),
                container: container.to_owned(),
                why: format!("it is not followed: no more than {MAX_LOGS} logs are at a time"),
            });
        }
    }
}

/// Whether an image is one of a repository.
pub(super) fn is_of(image: &str, repository: &str) -> bool {
    let rest = image.strip_prefix(repository);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '@']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_belongs_to_a_repository_by_its_whole_name() {
        assert!(is_of("r.example/web:1@sha256:0", "r.example/web"));
        assert!(is_of("r.example/web", "r.example/web"));
        assert!(!is_of("r.example/website:1", "r.example/web"));
        assert!(!is_of("other/r.example/web", "r.example/web"));
    }
}
