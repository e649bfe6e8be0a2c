//! Who this node is to others, and whether a key that the server names is that of a node.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portolan_identity::{IdentityError, ShareKeyClaim, TrustedAuthority, certificates_from_pem};
use prost::bytes::Bytes;

use crate::data::NodeIdentity;
use crate::wire::ShareRecipient;

/// Who this node is, and whom it trusts.
pub(super) struct Vouching {
    fleet: String,
    /// The authorities that came with the node's certificate. The first of them was pinned when it was enrolled.
    authorities: Vec<TrustedAuthority>,
    signature: Vec<u8>,
    certificate: Vec<u8>,
    /// What it was made from.
    chain: String,
    bundle: String,
}

impl Vouching {
    /// Signs the node's key for shares with the key of its certificate.
    pub(super) fn of(identity: &NodeIdentity, recipient: &str) -> Result<Self, IdentityError> {
        let enrolled = &identity.enrolled;
        let claim = ShareKeyClaim {
            fleet: &enrolled.fleet,
            node: &enrolled.node_uid,
            key: recipient,
        };
        let certificates = certificates_from_pem(&enrolled.certificate)?;
        let authorities = certificates_from_pem(&enrolled.authorities)?;
        let authorities = authorities.iter().map(|der| TrustedAuthority::read(der));
        Ok(Self {
            signature: claim.sign(&identity.key)?,
            certificate: certificates
                .first()
                .map(|der| der.to_vec())
                .unwrap_or_default(),
            fleet: enrolled.fleet.clone(),
            authorities: authorities.collect::<Result<_, _>>()?,
            chain: enrolled.certificate.clone(),
            bundle: enrolled.authorities.clone(),
        })
    }

    /// Whether the node still has the certificate and the authorities that this was made from.
    pub(super) fn is_of(&self, identity: &NodeIdentity) -> bool {
        let enrolled = &identity.enrolled;
        self.chain == enrolled.certificate && self.bundle == enrolled.authorities
    }

    /// The signature and the certificate of this node.
    pub(super) fn own(&self) -> (Bytes, Bytes) {
        (
            self.signature.clone().into(),
            self.certificate.clone().into(),
        )
    }

    /// Whether the key of a recipient is signed by its node.
    pub(super) fn check(&self, recipient: &ShareRecipient) -> Result<(), String> {
        if recipient.signature.is_empty() {
            return Err(
                "it is not signed; an agent of an earlier version does not sign".to_owned(),
            );
        }
        let claim = ShareKeyClaim {
            fleet: &self.fleet,
            node: &recipient.node,
            key: &recipient.key,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or(Duration::ZERO);
        let checked = claim.check(
            &recipient.signature,
            &recipient.certificate,
            &self.authorities,
            now,
        );
        checked.map_err(|error| error.to_string())
    }
}
