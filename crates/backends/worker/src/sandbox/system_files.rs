//! The files of the system that every confined worker reaches, and those that hold secrets.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Programs, libraries and settings. `/proc` shows the same of other processes as `ps`: Landlock refuses the rest.
/// `/etc/resolv.conf` leads to `/run`.
pub(super) const READABLE: &str = "\
    /bin /etc /gnu/store /lib /lib32 /lib64 /libx32 /nix/store /opt/intel /opt/nvidia /opt/rocm /proc \
    /run/resolvconf /run/systemd/resolve /run/nvidia /sbin /sys /usr /var/cache/fontconfig /var/lib/ca-certificates";

/// Devices that belong to nobody, and GPUs with their network.
const DEVICES: &str = "/dev/dri /dev/full /dev/infiniband /dev/kfd /dev/null /dev/nvidia-caps /dev/random /dev/urandom /dev/zero";

/// Named shared memory: `multiprocessing`, PyTorch's loaders and NCCL need it. It is one folder for all processes.
pub(super) const NAMED_MEMORY: &str = "/dev/shm";

/// Secret files below the folder for settings of the system.
const SECRET: &str = "\
    /etc/NetworkManager/system-connections /etc/galatea /etc/gshadow /etc/gshadow- /etc/kubernetes /etc/krb5.keytab \
    /etc/letsencrypt /etc/pki/tls/private /etc/rancher /etc/security/opasswd /etc/shadow /etc/shadow- /etc/ssh \
    /etc/ssl/private /etc/sudoers /etc/sudoers.d /etc/wireguard /run/secrets /var/run/secrets";

/// Secret files below the home of the server's user.
const SECRET_AT_HOME: &str = "\
    .aws .azure .cache/huggingface/token .cache/huggingface/stored_tokens .cargo/credentials.toml .config/gcloud \
    .config/gh .docker .git-credentials .gnupg .huggingface .kaggle .kube .netrc .npmrc .oci .pgpass .pypirc .ssh \
    .vault-token";

/// Returns the usual places of passwords and keys, for a user with this home.
pub fn secret_files(home: Option<&Path>) -> Vec<PathBuf> {
    let at_home = home
        .into_iter()
        .flat_map(|home| SECRET_AT_HOME.split_whitespace().map(move |name| home.join(name)));
    SECRET.split_whitespace().map(PathBuf::from).chain(at_home).collect()
}

/// Returns [`DEVICES`] and each device of NVIDIA, whose number differs from machine to machine.
pub(super) fn devices() -> Vec<PathBuf> {
    let found = fs::read_dir("/dev").into_iter().flatten().flatten().take(4096);
    let of_nvidia =
        found.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"nvidia"));
    of_nvidia
        .map(|entry| entry.path())
        .chain(DEVICES.split_whitespace().map(PathBuf::from))
        .collect()
}
