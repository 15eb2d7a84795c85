//! Certificates that tests make, and daemons that are reached by TLS.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use std::sync::atomic::{AtomicU64, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer,
    KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rota_client::{Builder, Client, Tls};
use tempfile::TempDir;

use crate::access::{counter, free_address};
use crate::cluster::Cluster;
use crate::native::{PATIENCE, builder};

/// Certificates of one test, in files.
pub struct Pki {
    dir: TempDir,
    newest: AtomicU64,
    pub ca: Issuer<'static, KeyPair>,
    pub other_ca: Issuer<'static, KeyPair>,
}

impl Pki {
    /// Two roots, and a certificate of the first for the daemon.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let pki = Self {
            ca: root(&dir, "ca"),
            other_ca: root(&dir, "other-ca"),
            newest: AtomicU64::new(100),
            dir,
        };
        pki.issue("daemon", "daemon.example", &pki.ca, (2000, 4000));
        pki
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A certificate and its key, good from the beginning of one year to that of another; its number.
    pub fn issue(
        &self,
        file: &str,
        name: &str,
        by: &Issuer<'static, KeyPair>,
        years: (i32, i32),
    ) -> u64 {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        let number = self.newest.fetch_add(1, Ordering::Relaxed);
        params.serial_number = Some(SerialNumber::from(number));
        let key = KeyPair::generate().expect("random numbers");
        let certificate = params.signed_by(&key, by).expect("a certificate");
        fs::write(self.path(&format!("{file}.pem")), certificate.pem()).expect("a file");
        fs::write(self.path(&format!("{file}.key")), key.serialize_pem()).expect("a file");
        number
    }

    /// A list of revoked certificates, by their numbers, good to the beginning of a year.
    pub fn revoke(&self, file: &str, by: &Issuer<'static, KeyPair>, numbers: &[u64], until: i32) {
        let revoked = |number: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*number),
            revocation_time: date_time_ymd(2001, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2000, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(self.newest.fetch_add(1, Ordering::Relaxed)),
            issuing_distribution_point: None,
            revoked_certs: numbers.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(by).expect("a list");
        fs::write(self.path(file), list.pem().expect("text")).expect("a file");
    }

    /// The section of a daemon that listens there.
    pub fn section(&self, listen: SocketAddr, more: &str) -> String {
        let dir = self.dir.path().display();
        format!(
            "[daemon.tls]\nlisten = [\"{listen}\"]\ncertificate = \"{dir}/daemon.pem\"\n\
             key = \"{dir}/daemon.key\"\n{more}\n"
        )
    }

    /// What makes clients show certificates of the first root.
    pub fn client_ca(&self) -> String {
        format!("client_ca = \"{}\"", self.path("ca.pem").display())
    }

    /// What a client with this certificate is told.
    pub fn tls(&self, file: &str) -> Tls {
        let tls = Tls::with_certificate(
            self.path("ca.pem"),
            self.path(&format!("{file}.pem")),
            self.path(&format!("{file}.key")),
        );
        tls.expect("good files").server_name("daemon.example")
    }
}

/// A daemon that listens by TLS, and a certificate for `alice.example`.
pub struct Served {
    pub cluster: Cluster,
    pub pki: Pki,
    pub listen: SocketAddr,
}

impl Served {
    pub fn new(settings: &str) -> Self {
        Self::with(settings, "")
    }

    /// Some settings come before the section, rules behind.
    pub fn with(settings: &str, rules: &str) -> Self {
        let (pki, listen) = (Pki::new(), free_address());
        pki.issue("alice", "alice.example", &pki.ca, (2000, 4000));
        let section = pki.section(listen, &pki.client_ca());
        let cluster = Cluster::start(1, &format!("{settings}\n{section}{rules}"));
        Self {
            cluster,
            pki,
            listen,
        }
    }

    pub fn address(&self) -> String {
        format!("tls:{}", self.listen)
    }

    pub fn builder(&self, name: &str) -> Builder {
        builder(name).tls(self.pki.tls("alice"))
    }

    pub fn client(&self, name: &str) -> Client {
        let client = self.builder(name).connect(self.address());
        client.expect("the daemon lets it in")
    }

    pub fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(self.listen).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
        socket.set_nodelay(true).expect("a flag");
        socket
    }

    /// Waits until the counter has come so far.
    pub fn await_counter(&self, name: &str, least: u64) {
        let until = Instant::now() + PATIENCE;
        while counter(&self.cluster, name) < least {
            assert!(Instant::now() < until, "{name} stays below {least}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A root, whose certificate is in a file.
pub fn root(dir: &TempDir, name: &str) -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    let key = KeyPair::generate().expect("random numbers");
    let root = params.self_signed(&key).expect("a certificate");
    fs::write(dir.path().join(format!("{name}.pem")), root.pem()).expect("a file");
    Issuer::new(params, key)
}
