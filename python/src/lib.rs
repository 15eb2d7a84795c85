//! The compiled half of the Python package `rota`: [`rota_client`] for Python.
//!
//! `client` is the blocking client; `rota/aio.py` makes one for asyncio of `steps` that never wait.
//! `line` is how its threads wait, without the interpreter's lock and open to signals. `event` is what
//! they are told, `payload` what they send, `error` what they raise, `tls` how they know daemons of other hosts.

mod arguments;
mod client;
mod connect;
mod error;
mod event;
mod line;
mod payload;
mod steps;
mod tls;

/// What `rota/__init__.py` imports from.
#[pyo3::pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::event::{
        Excluded, Included, Lagging, Message, NotSent, SelfLeave, Skipped, Transitional, View,
    };
    #[pymodule_export]
    use crate::steps::{Request, Steps};
    #[pymodule_export]
    use crate::tls::Tls;

    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
