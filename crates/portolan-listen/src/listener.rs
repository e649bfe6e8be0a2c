//! Where connections come from: a TCP address, or a Unix socket that only its owner's processes may use.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// What a server accepts connections from.
#[derive(Debug)]
pub enum Listener {
    /// An address.
    Tcp(TcpListener),
    /// A socket in the file system. Connections of other users are closed at once.
    Socket(UnixListener),
}

/// A connection that was accepted.
pub(crate) enum Connection {
    Tcp(TcpStream, IpAddr),
    Socket(UnixStream),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl Listener {
    /// Makes a socket that only this user can open; inside of the runtime.
    ///
    /// # Errors
    /// When it cannot be made: a path may have about a hundred bytes.
    pub fn socket(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(Self::Socket(listener))
    }

    pub(crate) async fn accept(&self) -> io::Result<Connection> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok(Connection::Tcp(stream, address.ip()))
            }
            Self::Socket(listener) => {
                let (stream, _) = listener.accept().await?;
                let user = stream.peer_cred()?.uid();
                if user != rustix::process::geteuid().as_raw() {
                    tracing::warn!(user, "another user of this machine was refused");
                    return Err(ErrorKind::ConnectionRefused.into());
                }
                Ok(Connection::Socket(stream))
            }
        }
    }
}

impl Connection {
    /// Whom the connection is counted for: all processes of this user are one client.
    pub(crate) fn address(&self) -> IpAddr {
        match self {
            Self::Tcp(_, address) => *address,
            Self::Socket(_) => Ipv4Addr::LOCALHOST.into(),
        }
    }
}
