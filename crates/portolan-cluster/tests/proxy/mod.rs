//! A connection to an API server that can be cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Passes bytes on until it is told not to.
pub(crate) struct Proxy {
    port: u16,
    cut: Arc<Notify>,
    refuses: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(url: &str) -> Self {
        let target = url.trim_start_matches("https://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (cut, refuses) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (cut_here, refuses_here) = (Arc::clone(&cut), Arc::clone(&refuses));
        let task = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                if refuses_here.load(Ordering::SeqCst) {
                    continue;
                }
                let (target, cut) = (target.clone(), Arc::clone(&cut_here));
                tokio::spawn(async move {
                    let Ok(mut server) = TcpStream::connect(target).await else {
                        return;
                    };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                        () = cut.notified() => {}
                    }
                });
            }
        });
        Self {
            port,
            cut,
            refuses,
            task,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Ends every connection.
    pub(crate) fn cut(&self) {
        self.cut.notify_waiters();
    }

    /// Ends every connection and takes no new ones.
    pub(crate) fn refuse(&self) {
        self.refuses.store(true, Ordering::SeqCst);
        self.cut();
    }

    pub(crate) fn admit(&self) {
        self.refuses.store(false, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}
