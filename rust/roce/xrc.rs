// SPDX-License-Identifier: GPL-2.0

//! XRC addressing (IBTA annex A14): which shared receive queue a request names, and whether the
//! request may use it.

use crate::number::Srqn;
use crate::responder::ReceiveError;
use crate::wire::Packet;

/// What a responder finds under an SRQ number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Nothing, or a shared receive queue that is not an XRC one.
    Nothing,
    /// An XRC shared receive queue of the XRC domain with this identity.
    Domain(u64),
}

/// Checks that what lies under an SRQ number belongs to the XRC domain of the target QP.
///
/// # Errors
///
/// [`ReceiveError::InvalidSrq`] or [`ReceiveError::WrongDomain`]. Both end the connection; they are
/// told apart for whoever reads the log.
#[inline]
pub const fn check_domain(found: Found, own_domain: u64) -> Result<(), ReceiveError> {
    match found {
        Found::Nothing => Err(ReceiveError::InvalidSrq),
        Found::Domain(d) if d == own_domain => Ok(()),
        Found::Domain(_) => Err(ReceiveError::WrongDomain),
    }
}

/// The SRQ number of a request; `None` for a transport without one.
#[inline]
pub(crate) fn srqn_of(packet: &Packet<'_>) -> Option<Srqn> {
    packet.xrceth.map(|h| h.srqn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains() {
        assert_eq!(check_domain(Found::Domain(7), 7), Ok(()));
        assert_eq!(
            check_domain(Found::Domain(8), 7),
            Err(ReceiveError::WrongDomain)
        );
        assert_eq!(
            check_domain(Found::Nothing, 7),
            Err(ReceiveError::InvalidSrq)
        );
    }
}
