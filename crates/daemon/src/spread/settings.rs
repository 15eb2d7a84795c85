//! The settings of a daemon's sessions.

use std::fmt;

use super::name::is_legal;
use super::{AuthMethod, ByteOrder, MAX_DAEMON_NAME, NameError, Version};

/// The settings that all sessions of one daemon share. Checked once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    pub(super) daemon: Vec<u8>,
    pub(super) order: ByteOrder,
    pub(super) version: Version,
    pub(super) allowed: Vec<AuthMethod>,
    pub(super) required: Vec<AuthMethod>,
}

impl Settings {
    /// The version that clients are told, which is the version of the protocol here.
    pub const VERSION: Version = Version {
        major: 5,
        minor: 0,
        patch: 1,
    };

    /// Of the daemon of this name (1 to 19 characters from `$` to `~`): little-endian numbers, and
    /// every client is let in.
    pub fn new(daemon: &[u8]) -> Result<Self, SettingsError> {
        if daemon.is_empty() || daemon.len() > MAX_DAEMON_NAME {
            return Err(SettingsError::Daemon(NameError::Length));
        }
        if !daemon.iter().all(|&byte| is_legal(byte)) {
            return Err(SettingsError::Daemon(NameError::Character));
        }
        Ok(Self {
            daemon: daemon.to_vec(),
            order: ByteOrder::Little,
            version: Self::VERSION,
            allowed: vec![AuthMethod::Null],
            required: Vec::new(),
        })
    }

    /// Sends numbers in this order. Clients take both; little-endian is what they know.
    pub fn order(mut self, order: ByteOrder) -> Self {
        self.order = order;
        self
    }

    /// Tells clients this version. Some refuse versions below 3.8; all numbers are below 128.
    pub fn version(mut self, version: Version) -> Result<Self, SettingsError> {
        let Version {
            major,
            minor,
            patch,
        } = version;
        if major < 3 || [major, minor, patch].iter().any(|&part| part >= 128) {
            return Err(SettingsError::Version(version));
        }
        self.version = version;
        Ok(self)
    }

    /// Offers these methods, and runs the required ones whatever a client chooses.
    pub fn auth(
        mut self,
        allowed: &[AuthMethod],
        required: &[AuthMethod],
    ) -> Result<Self, SettingsError> {
        if allowed.is_empty() || !required.iter().all(|method| allowed.contains(method)) {
            return Err(SettingsError::Auth);
        }
        self.allowed.clear();
        self.required.clear();
        for &method in allowed {
            super::auth::add(&mut self.allowed, method);
        }
        for &method in required {
            super::auth::add(&mut self.required, method);
        }
        Ok(self)
    }
}

/// Why settings are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingsError {
    /// The daemon's name.
    Daemon(NameError),
    /// Clients would not talk to this version, or cannot be told it.
    Version(Version),
    /// No method is offered, or one is required that is not offered.
    Auth,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Daemon(error) => write!(f, "the daemon's name: {error}"),
            Self::Version(version) => write!(f, "no client talks to version {version}"),
            Self::Auth => f.write_str("every required method of authentication must be offered"),
        }
    }
}

impl std::error::Error for SettingsError {}
