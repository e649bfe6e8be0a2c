//! The certificate authorities of the fleet, in the store, so that every server signs and trusts the same.
//!
//! The first server to create the record wins. A year before an authority ends the next one is made; for a month it
//! is only trusted, so that everybody learns of it, and then it signs. Whoever knows only the old one still trusts
//! what the new one signs, by a certificate of the old one for the new one's key.
//!
//! ```text
//! authority 1  ├──── signs ────┼──────── trusted ────────┤ ended
//! authority 2                ├trusted┼──── signs ────┼──────── trusted ────────┤
//!                            0      30 days        1 year                    2 years
//! ```

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::RwLock;
use portolan_identity::{
    Authority, CaPin, IdentityError, IssuedServer, TrustedAuthority, certificates_to_pem,
};
use portolan_kinds::wire::{SealedValues, StoredAuthorities, StoredAuthority};
use portolan_store::{Store, Transaction};
use prost::Message as _;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::clock::TimeSource;
use crate::error::ApiError;
use crate::seal::{SealError, Sealer};

const DAY: Duration = Duration::from_hours(24);
/// How long an authority is valid.
pub(crate) const AUTHORITY_LIFE: Duration = DAY.saturating_mul(730);
/// How old the newest authority gets before there is another one.
const ROTATE_AFTER: Duration = DAY.saturating_mul(365);
/// How long a new authority is only trusted.
const ANNOUNCE: Duration = DAY.saturating_mul(30);
/// How long a server's certificate is valid.
const SERVER_LIFE: Duration = DAY.saturating_mul(90);
/// How often a record that lost a race is written again.
const ATTEMPTS: usize = 8;

/// The authorities of the fleet.
pub(crate) struct Authorities {
    store: Store,
    sealer: Option<Arc<Sealer>>,
    time: Arc<dyn TimeSource>,
    current: RwLock<Arc<Loaded>>,
}

/// The authorities as they were read last.
pub(crate) struct Loaded {
    pub(crate) fleet: String,
    pub(crate) trusted: Vec<TrustedAuthority>,
    signer: Authority,
    /// Whether the next authority is trusted already and does not sign yet.
    pub(crate) is_next_announced: bool,
    /// What a server shows after its own certificate, the signer's first.
    chain: String,
}

/// Why the authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthorityError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("the key of the certificate authority cannot be opened: {0}")]
    Seal(#[from] SealError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

impl Authorities {
    /// Reads the authorities, or makes the first one.
    pub(crate) async fn open(
        store: Store,
        sealer: Option<Arc<Sealer>>,
        time: Arc<dyn TimeSource>,
    ) -> Result<Self, AuthorityError> {
        let loaded = upkeep(&store, sealer.as_deref(), time.now(), false).await?;
        Ok(Self {
            store,
            sealer,
            time,
            current: RwLock::new(Arc::new(loaded)),
        })
    }

    /// Reads the record again, and makes the next authority when it is time; `rotate` makes it now.
    pub(crate) async fn refresh(&self, rotate: bool) -> Result<(), AuthorityError> {
        let now = self.time.now();
        let loaded = upkeep(&self.store, self.sealer.as_deref(), now, rotate).await?;
        *self.current.write() = Arc::new(loaded);
        Ok(())
    }

    pub(crate) fn current(&self) -> Arc<Loaded> {
        Arc::clone(&self.current.read())
    }

    pub(crate) fn now(&self) -> Duration {
        self.time.now()
    }
}

impl Loaded {
    pub(crate) fn signer(&self) -> &Authority {
        &self.signer
    }

    /// The authorities that clients should trust, in PEM format.
    pub(crate) fn bundle(&self) -> String {
        let all: Vec<_> = self
            .trusted
            .iter()
            .map(|one| one.certificate().clone())
            .collect();
        certificates_to_pem(&all)
    }

    /// What an agent is told to know the server by.
    pub(crate) fn pin(&self) -> Result<CaPin, IdentityError> {
        CaPin::of_certificate(self.signer.certificate())
    }

    /// When the newest authority ends.
    pub(crate) fn expires(&self) -> Duration {
        let ends = self.trusted.iter().map(TrustedAuthority::expires);
        ends.max().unwrap_or_default()
    }

    /// A certificate for a server, with all that a client needs to trust it.
    pub(crate) fn issue_server(
        &self,
        names: &[String],
        now: Duration,
    ) -> Result<IssuedServer, IdentityError> {
        let mut issued = self.signer.issue_server(names, now, SERVER_LIFE)?;
        issued.certificate.push_str(&self.chain);
        Ok(issued)
    }

    /// What identifies the certificate that a server should show.
    pub(crate) fn chain(&self) -> &str {
        &self.chain
    }
}

/// Reads the record, changes it when that is due, and opens it.
async fn upkeep(
    store: &Store,
    sealer: Option<&Sealer>,
    now: Duration,
    rotate: bool,
) -> Result<Loaded, AuthorityError> {
    let sealer = sealer.ok_or_else(|| {
        ApiError::unavailable("this server has no key to encrypt the certificate authority with")
            .hint("start it with --secret-key-file")
    })?;
    let mut rotate = rotate;
    for _ in 0..ATTEMPTS {
        let record = store.get(key()).await.map_err(ApiError::from)?;
        let (revision, stored) = match record {
            Some(record) => {
                let stored = StoredAuthorities::decode(record.value)
                    .map_err(|_| ApiError::internal("the record of authorities is damaged"))?;
                (record.mod_revision, stored)
            }
            None => (0, StoredAuthorities::default()),
        };
        let Some(next) = due(&stored, sealer, now, rotate)? else {
            return load(&stored, sealer, now);
        };
        let write = Transaction::replace(key(), revision, next.encode_to_vec());
        if store.commit(write).await.map_err(ApiError::from)?.succeeded {
            return load(&next, sealer, now);
        }
        // Somebody else was faster: what they made counts.
        rotate = false;
    }
    Err(ApiError::unavailable("the record of authorities changes all the time").into())
}

/// What the record should become; `None` when it is as it should be.
fn due(
    stored: &StoredAuthorities,
    sealer: &Sealer,
    now: Duration,
    rotate: bool,
) -> Result<Option<StoredAuthorities>, AuthorityError> {
    let mut next = stored.clone();
    if next.fleet.is_empty() {
        next.fleet = crate::objects::new_uuid();
    }
    let ends = |one: &StoredAuthority| {
        TrustedAuthority::read(&one.certificate).map_or(Duration::ZERO, |one| one.expires())
    };
    next.authorities.retain(|one| ends(one) > now);
    for one in &mut next.authorities {
        let sealed = one.key.clone().unwrap_or_default();
        if let Some(rewrapped) = sealer.rewrap(&sealed, &bound_to(&next.fleet, one.number))? {
            one.key = Some(rewrapped);
        }
    }
    let newest = next.authorities.last();
    let age = newest.map(|one| (now + AUTHORITY_LIFE).saturating_sub(ends(one)));
    if rotate || age.is_none_or(|age| age >= ROTATE_AFTER) {
        add_authority(&mut next, sealer, now)?;
    }
    Ok((next != *stored).then_some(next))
}

fn add_authority(
    authorities: &mut StoredAuthorities,
    sealer: &Sealer,
    now: Duration,
) -> Result<(), AuthorityError> {
    let fleet = authorities.fleet.clone();
    authorities.made += 1;
    let number = authorities.made;
    let made = Authority::create(&fleet, number, now, AUTHORITY_LIFE)?;
    let (cross_certificate, signs_from) = match authorities.authorities.last() {
        None => (Vec::new(), now),
        Some(before) => {
            let life = TrustedAuthority::read(&before.certificate)?
                .expires()
                .saturating_sub(now);
            let before = open_authority(&fleet, before, sealer)?;
            let cross = before.cross_sign(&made, (&fleet, number), now, life)?;
            // An old one that ends sooner cannot be waited for.
            (cross.to_vec(), now + ANNOUNCE.min(life / 2))
        }
    };
    authorities.authorities.push(StoredAuthority {
        number,
        certificate: made.certificate().to_vec().into(),
        cross_certificate: cross_certificate.into(),
        key: Some(seal_key(&fleet, number, &made.key(), sealer)?),
        signs_from: signs_from.as_secs(),
    });
    Ok(())
}

fn load(
    stored: &StoredAuthorities,
    sealer: &Sealer,
    now: Duration,
) -> Result<Loaded, AuthorityError> {
    let all = &stored.authorities;
    let signing = all.iter().rposition(|one| one.signs_from <= now.as_secs());
    let signing = signing.unwrap_or(0);
    let signer = all
        .get(signing)
        .ok_or_else(|| ApiError::internal("the fleet has no certificate authority"))?;
    let trusted: Result<Vec<_>, _> = all
        .iter()
        .map(|one| TrustedAuthority::read(&one.certificate))
        .collect();
    // From the signer down to the oldest: each is also certified by the one before it.
    let mut chain = String::new();
    for one in all.iter().take(signing + 1).rev() {
        for der in [&one.certificate, &one.cross_certificate] {
            if !der.is_empty() {
                chain.push_str(&certificates_to_pem(&[der.to_vec().into()]));
            }
        }
    }
    Ok(Loaded {
        fleet: stored.fleet.clone(),
        trusted: trusted?,
        is_next_announced: signing + 1 < all.len(),
        signer: open_authority(&stored.fleet, signer, sealer)?,
        chain,
    })
}

fn seal_key(
    fleet: &str,
    number: u32,
    key: &[u8],
    sealer: &Sealer,
) -> Result<SealedValues, SealError> {
    let values = Map::from_iter([("key".to_owned(), Value::from(STANDARD.encode(key)))]);
    sealer.seal(&values, &bound_to(fleet, number))
}

fn open_authority(
    fleet: &str,
    stored: &StoredAuthority,
    sealer: &Sealer,
) -> Result<Authority, AuthorityError> {
    let sealed = stored.key.clone().unwrap_or_default();
    let values = sealer.open(&sealed, &bound_to(fleet, stored.number))?;
    let key = values
        .get("key")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let key = STANDARD.decode(key).map_err(|_| SealError::Damaged)?;
    Ok(Authority::open(&stored.certificate, &Zeroizing::new(key))?)
}

fn bound_to(fleet: &str, number: u32) -> String {
    format!("authority/{fleet}/{number}")
}

fn key() -> String {
    format!("{}ca", portolan_store::keys::META)
}
