//! A module that a web server holds.

use std::time::Duration;

use http::StatusCode;
use ocm_api::policy::UrlSource;

use crate::MAX_MODULE;
use crate::digest::Digest;
use crate::error::{Error, ErrorKind};
use crate::http::{Sent, Target, send, shown};
use crate::trust::Trust;

/// Fetches the file that a HubPolicy names, within `limit`.
///
/// # Errors
/// When it cannot be had, or is another one.
pub async fn file(source: &UrlSource, limit: Duration) -> Result<Vec<u8>, Error> {
    let UrlSource { url, sha256, ca_certificates } = source;
    let name = shown(url);
    let trust = ca_certificates.as_deref().map_or_else(|| Ok(Trust::default()), Trust::pem)?;
    let wanted = &Digest::from_hex(sha256).ok_or_else(|| {
        let why = format!("the SHA-256 that {name} is to have is not 64 lower-case hexadecimal digits");
        Error::new(ErrorKind::Invalid, why)
    })?;
    let target = Target::parse(url)?;
    let answer = send(&target, &Sent { most: MAX_MODULE, ..Sent::default() }, &trust, limit).await?;
    let server = target.server();
    let kind = match answer.status {
        StatusCode::OK => {
            let (found, module) = Digest::of_large(answer.body).await;
            if found == *wanted {
                return Ok(module);
            }
            let why = format!("the file of {name} has the digest {found}, and {wanted} is wanted");
            return Err(Error::new(ErrorKind::WrongDigest, why));
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ErrorKind::Unauthorized,
        StatusCode::NOT_FOUND | StatusCode::GONE => ErrorKind::NotFound,
        _ => ErrorKind::Refused,
    };
    Err(Error::new(kind, format!("{server} answers HTTP {} for {name}", answer.status.as_u16())))
}
