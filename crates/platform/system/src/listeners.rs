//! The process that listens at a port. Linux shows it only for processes that the reader may inspect.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// State of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// Describes the process that listens at a port of TCP: `process 4711 (python3)`. Returns `None` if it is unknown.
pub fn who_listens(port: u16) -> Option<String> {
    let read = |file| fs::read_to_string(file).unwrap_or_default();
    let tables = [read("/proc/net/tcp"), read("/proc/net/tcp6")];
    let sockets = tables.iter().flat_map(|table| listening(table, port));
    let links: Vec<String> = sockets.map(|inode| format!("socket:[{inode}]")).collect();
    let entries = fs::read_dir("/proc").ok()?.flatten();
    // The parse leaves out `/proc/self`, which is one of the processes.
    let mut processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let id = processes.find(|id| has_any(&process(*id), &links))?;
    let name = fs::read_to_string(process(id).join("comm")).unwrap_or_default();
    // A process chooses its own name, which may contain control characters.
    let name: String = name.trim().chars().filter(|c| !c.is_control()).collect();
    Some(format!("process {id} ({name})"))
}

/// Returns the inodes of sockets that listen at the port, in a table such as `/proc/net/tcp`.
fn listening<'t>(table: &'t str, port: u16) -> Vec<&'t str> {
    let end = format!(":{port:04X}");
    let inode = |line: &'t str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_it = words.get(1)?.ends_with(&end) && *words.get(3)? == LISTENING;
        words.get(9).copied().filter(|_| is_it)
    };
    table.lines().filter_map(inode).collect()
}

fn process(id: u32) -> PathBuf {
    Path::new("/proc").join(id.to_string())
}

fn has_any(process: &Path, links: &[String]) -> bool {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let mut targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.any(|target| target.to_str().is_some_and(|text| links.iter().any(|link| link == text)))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_listening_process_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let found = who_listens(port).expect("this process");
        assert!(found.starts_with(&format!("process {} (", std::process::id())), "{found}");
        drop(listener);
        assert_eq!(who_listens(port), None, "nobody");
    }

    #[test]
    fn lines_of_other_sockets_are_skipped() {
        let table = "  sl  local_address rem_address   st tx rx tr tm retr uid timeout inode\n   \
             0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 111 1\n   \
             1: 0100007F:1F40 0100007F:9C40 01 00000000:00000000 00:00000000 00000000 0 0 222 1\n   \
             2: 00000000:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 333 1\n\n x";
        assert_eq!(listening(table, 8000), ["111"]);
        assert!(listening(table, 1).is_empty());
    }
}
