//! A bucket, or a path in one, as [`RemoteFiles`].

use std::{borrow::Cow, fmt};

use futures_util::{StreamExt, TryStreamExt};
use http::HeaderMap;
use object_store::{
    GetOptions, GetRange, ObjectMeta,
    list::{PaginatedListOptions, PaginatedListResult},
    path::Path,
};

use super::{checksum, failure, store::Store};
use crate::{
    address::{Address, Service},
    error::{FailureKind, RemoteError},
    remote_files::{OpenFile, RemoteFile, RemoteFiles},
};

/// Most pages of a listing. A server may send them without end.
const MOST_PAGES: usize = 1000;

/// The files of an object store.
pub struct ObjectStoreFiles {
    place: String,
    address: Address,
    store: Store,
}

impl ObjectStoreFiles {
    pub(super) fn new(given: &str, address: &Address, store: Store) -> Self {
        Self { place: given.to_owned(), address: address.clone(), store }
    }

    /// Returns the beginning of the names of objects in a folder, which is below the path of the address.
    fn prefix(&self, folder: &str) -> String {
        let parts = [&*self.address.path, folder];
        parts.iter().filter(|part| !part.is_empty()).map(|part| format!("{part}/")).collect()
    }

    async fn page(
        &self,
        prefix: &str,
        options: PaginatedListOptions,
    ) -> object_store::Result<PaginatedListResult> {
        let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
        self.store.client().await.list_paginated(prefix, options).await
    }

    /// Reads all pages. `take` gets each and returns the number of items so far, of which `most` is the limit.
    async fn pages(
        &self,
        prefix: &str,
        delimiter: Option<&'static str>,
        most: usize,
        mut take: impl FnMut(PaginatedListResult) -> usize + Send,
    ) -> Result<(), RemoteError> {
        let mut token = None;
        for _ in 0..MOST_PAGES {
            let delimiter = delimiter.map(Cow::Borrowed);
            let options =
                PaginatedListOptions { delimiter, page_token: token, ..Default::default() };
            let page = self.page(prefix, options).await;
            let mut page = page.map_err(|error| failure::of(&error))?;
            token = page.page_token.take();
            if take(page) > most {
                break;
            }
            if token.is_none() {
                return Ok(());
            }
        }
        let text =
            format!("there are more than {most} objects below '{prefix}' in '{}'", self.place);
        Err(RemoteError::new(FailureKind::Invalid, text))
    }

    async fn has_any(&self, prefix: &str) -> Result<bool, RemoteError> {
        let options = PaginatedListOptions { max_keys: Some(1), ..Default::default() };
        let page = match self.page(prefix, options).await {
            // The folder contains a name that cannot be used here. The listing of its content reports it.
            Err(object_store::Error::InvalidPath { .. }) => return Ok(true),
            page => page.map_err(|error| failure::of(&error))?,
        };
        Ok(!page.result.objects.is_empty() || !page.result.common_prefixes.is_empty())
    }

    fn file(&self, object: ObjectMeta) -> RemoteFile {
        let path = object.location.as_ref();
        let root = self.prefix("");
        let version = match (&object.e_tag, &object.version) {
            (Some(etag), _) => format!("{ETAG}{etag}"),
            (None, Some(version)) => version.clone(),
            (None, None) => object.last_modified.to_rfc3339(),
        };
        RemoteFile {
            path: path.strip_prefix(&root).unwrap_or(path).to_owned(),
            size: object.size,
            version,
            checksum: None,
        }
    }

    fn location(&self, file: &RemoteFile) -> Result<Path, RemoteError> {
        let full = format!("{}{}", self.prefix(""), file.path);
        Path::parse(&full)
            .map_err(|error| RemoteError::new(FailureKind::Invalid, format!("{full:?}: {error}")))
    }

    /// Returns Triton's text for a bucket that cannot be accessed.
    fn no_client(&self, error: RemoteError) -> RemoteError {
        let service = match self.address.service {
            Service::S3 => "S3 filesystem",
            Service::Gcs => "GCS",
            Service::Azure => "Azure filesystem",
        };
        error.within(format!(
            "Unable to create {service} client. Check account credentials. '{}'",
            self.place
        ))
    }
}

/// Beginning of a version that is an ETag.
const ETAG: &str = "etag:";

impl RemoteFiles for ObjectStoreFiles {
    fn place(&self) -> &str {
        &self.place
    }

    fn identity(&self) -> String {
        let Address { service, endpoint, account, bucket, path } = &self.address;
        let of = |text: &Option<String>| text.clone().unwrap_or_default();
        [service.key(), &of(endpoint), &of(account), bucket, path].join("\n")
    }

    async fn check(&self) -> Result<(), RemoteError> {
        let prefix = self.prefix("");
        if !self.has_any(&prefix).await.map_err(|error| self.no_client(error))? {
            log::warn!(
                "model repository '{}' is empty: there is nothing in '{prefix}' of its bucket",
                self.place
            );
        }
        Ok(())
    }

    async fn folders(&self, most: usize) -> Result<Vec<String>, RemoteError> {
        let (root, mut names) = (self.prefix(""), Vec::new());
        let take = |page: PaginatedListResult| {
            let folders = page.result.common_prefixes.iter();
            names.extend(
                folders.filter_map(|path| path.as_ref().strip_prefix(&root)).map(str::to_owned),
            );
            names.len()
        };
        self.pages(&root, Some("/"), most, take).await?;
        Ok(names)
    }

    async fn holds(&self, folder: &str) -> Result<bool, RemoteError> {
        self.has_any(&self.prefix(folder)).await
    }

    async fn list(&self, folder: &str, most: usize) -> Result<Vec<RemoteFile>, RemoteError> {
        let (prefix, mut files) = (self.prefix(folder), Vec::new());
        let take = |page: PaginatedListResult| {
            let objects = page.result.objects.into_iter().map(|object| self.file(object));
            files.extend(objects.filter(|file| file.path != folder));
            files.len()
        };
        self.pages(&prefix, None, most, take).await?;
        Ok(files)
    }

    async fn open(&self, file: &RemoteFile, from: u64) -> Result<OpenFile, RemoteError> {
        let etag = file.version.strip_prefix(ETAG);
        let quoted = etag.map(|etag| format!("\"{}\"", bare(etag)));
        let range = (from > 0).then_some(GetRange::Offset(from));
        let options = GetOptions { if_match: quoted, range, ..Default::default() };
        let client = self.store.client().await;
        let got = client.get_opts(&self.location(file)?, options).await;
        let got = got.map_err(|error| failure::of(&error))?;
        let is_other = |found: &String| etag.is_some_and(|etag| bare(etag) != bare(found));
        if got.meta.size != file.size || got.meta.e_tag.as_ref().is_some_and(is_other) {
            let text = "it changed since it was listed: it was uploaded again";
            return Err(RemoteError::new(FailureKind::Changed, text));
        }
        let headers = got.extensions.get::<HeaderMap>();
        let checksum =
            headers.and_then(|headers| checksum::of(self.address.service, headers, from == 0));
        let bytes = got.into_stream().map_err(|error| failure::of(&error)).boxed();
        Ok(OpenFile { bytes, checksum })
    }
}

/// Removes quotes: headers have them, listings do not.
fn bare(etag: &str) -> &str {
    etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"')
}

impl fmt::Debug for ObjectStoreFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectStoreFiles").field(&self.place).finish()
    }
}
