//! The file of a Unix socket on which a service listens.

use std::{
    fs::{self, File, Metadata, Permissions},
    io,
    os::{
        fd::OwnedFd,
        unix::{
            fs::{FileTypeExt, MetadataExt, PermissionsExt},
            net::UnixListener,
        },
    },
    path::{Path, PathBuf},
};

use galatea_system::{LockKind, try_lock};
use socket2::{Domain, SockAddr, Socket, Type};

/// The file of a listening socket, removed when it is dropped.
///
/// The file of a server that has died stays, and looks like that of a server that has not begun to listen. Therefore whoever
/// replaces it has the lock of a second file beside it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode: another program may have replaced the file meanwhile.
    id: (u64, u64),
    // Dropped after the file was removed.
    lock: Lock,
}

/// The reason why a service cannot listen at a path. The advice to take another path follows it.
#[derive(Debug, thiserror::Error)]
pub enum SocketFileError {
    #[error("Socket 'unix:{}' already in use by another process: stop it", .0.display())]
    InUse(PathBuf),
    #[error("cannot listen at 'unix:{}': the file is no socket: remove it", .0.display())]
    NoSocket(PathBuf),
    #[error(
        "cannot listen at 'unix:{}': {error}; the server must be able to make files in an existing folder: make it",
        .path.display()
    )]
    System { path: PathBuf, error: io::Error },
}

type Result<T> = std::result::Result<T, SocketFileError>;

impl SocketFile {
    /// Makes a socket that listens at `path`, with so long a queue of connections to accept. A file that a dead server has left
    /// there is replaced. It gets the rights in `mode`, else those that the umask leaves.
    pub fn listen(path: &Path, backlog: i32, mode: Option<u32>) -> Result<(UnixListener, Self)> {
        let failed = |error| SocketFileError::System { path: path.to_owned(), error };
        let lock = Lock::take(path)?;
        remove_unused(path)?;
        let listener = bind(path, backlog, mode).map_err(failed)?;
        let id = id(&fs::symlink_metadata(path).map_err(failed)?);
        Ok((listener, Self { path: path.to_owned(), id, lock }))
    }

    /// Returns the file of another server's socket, with its lock. It is not removed unless it becomes this server's own.
    pub fn adopt(path: &Path, lock: Option<OwnedFd>) -> Self {
        let id = fs::symlink_metadata(path).map_or((0, 0), |found| id(&found));
        let lock = Lock { path: Lock::beside(path), file: lock.map(File::from), is_own: false };
        Self { path: path.to_owned(), id, lock }
    }

    /// Sets whether the file belongs to this server, which then removes it at the end.
    pub fn set_own(&mut self, is_own: bool) {
        self.lock.is_own = is_own;
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a further descriptor of the lock. The lock is held until all are closed.
    pub fn try_clone_lock(&self) -> io::Result<OwnedFd> {
        match &self.lock.file {
            Some(file) => Ok(file.try_clone()?.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_there = || fs::symlink_metadata(&self.path).is_ok_and(|found| id(&found) == self.id);
        if self.lock.is_own && is_there() {
            remove(&self.path);
        }
    }
}

/// The right to listen at a path.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    /// The locked file; `None` if the other server had none.
    file: Option<File>,
    /// The files belong to this server, and not to another one that has passed or got them.
    is_own: bool,
}

impl Lock {
    fn beside(socket: &Path) -> PathBuf {
        let mut path = socket.to_owned().into_os_string();
        path.push(".lock");
        PathBuf::from(path)
    }

    fn take(socket: &Path) -> Result<Self> {
        let path = Self::beside(socket);
        match try_lock(&path, LockKind::Alone) {
            Ok(Some(file)) => Ok(Self { path, file: Some(file), is_own: true }),
            Ok(None) => Err(SocketFileError::InUse(socket.to_owned())),
            Err(error) => Err(SocketFileError::System { path: socket.to_owned(), error }),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Somebody may have removed the file, and another server have made its own.
        if self.is_own
            && let Some(file) = &self.file
            && let (Ok(own), Ok(found)) = (file.metadata(), fs::symlink_metadata(&self.path))
            && id(&own) == id(&found)
        {
            remove(&self.path);
        }
    }
}

/// Removes the file of a socket on which nobody listens.
fn remove_unused(path: &Path) -> Result<()> {
    let failed = |error| SocketFileError::System { path: path.to_owned(), error };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            Err(SocketFileError::NoSocket(path.to_owned()))
        }
        Ok(_) => match connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(failed)
            }
            Ok(()) => Err(SocketFileError::InUse(path.to_owned())),
            // The queue of a busy server is full.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(SocketFileError::InUse(path.to_owned()))
            }
            Err(error) => Err(failed(error)),
        },
    }
}

fn connect(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(path)?)
}

fn bind(path: &Path, backlog: i32, mode: Option<u32>) -> io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    if let Some(mode) = mode {
        // Nobody can connect before the socket listens.
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    socket.listen(backlog)?;
    Ok(socket.into())
}

fn id(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        log::warn!("failed to remove '{}': {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[track_caller]
    fn assert_refused(path: &Path, reason: &str) {
        let error = SocketFile::listen(path, 1, None).expect_err("refused").to_string();
        assert!(error.contains(reason) && error.contains(&path.display().to_string()), "{error}");
    }

    #[test]
    fn a_path_has_one_listener_whose_files_go_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let (listener, file) = SocketFile::listen(&path, 1, None).expect("free");
        assert_refused(&path, "already in use");
        UnixStream::connect(&path).expect("it listens");
        drop(listener);
        assert_refused(&path, "already in use");
        drop(file);
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn a_server_whose_files_were_removed_leaves_those_of_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let (_first, file) = SocketFile::listen(&path, 1, None).expect("free");
        for found in fs::read_dir(folder.path()).expect("a folder") {
            fs::remove_file(found.expect("a file").path()).expect("removed");
        }
        let (_second, _kept) = SocketFile::listen(&path, 1, None).expect("free");
        drop(file);
        assert_eq!(files(folder.path()), 2);
    }

    #[test]
    fn only_the_file_of_a_dead_server_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let other = UnixListener::bind(&path).expect("free");
        assert_refused(&path, "already in use");
        UnixStream::connect(&path).expect("it still listens");
        drop(other);
        let (_listener, file) = SocketFile::listen(&path, 1, None).expect("nobody listens");
        UnixStream::connect(&path).expect("it listens");
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "of somebody else").expect("written");
        drop(file);
        assert_eq!(files(folder.path()), 1);
        assert_refused(&path, "the file is no socket");
        assert_refused(&folder.path().join("none/socket"), "No such file or directory");
        assert_eq!(files(folder.path()), 1, "a refused server leaves nothing");
    }

    #[test]
    fn the_files_go_with_the_server_that_got_them_last() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let (listener, mut old) = SocketFile::listen(&path, 1, Some(0o600)).expect("free");
        let mode = fs::metadata(&path).expect("made").mode();
        assert_eq!(mode & 0o777, 0o600);
        let pass = |from: &SocketFile| {
            SocketFile::adopt(&path, Some(from.try_clone_lock().expect("a lock")))
        };
        drop(pass(&old));
        assert_eq!(files(folder.path()), 2, "a server that failed leaves what it did not get");
        let mut new = pass(&old);
        new.set_own(true);
        old.set_own(false);
        drop(old);
        assert_eq!(files(folder.path()), 2, "the old server leaves them");
        assert_refused(&path, "already in use");
        drop(listener);
        assert_refused(&path, "already in use");
        drop(new);
        assert_eq!(files(folder.path()), 0);
    }
}
