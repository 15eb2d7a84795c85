//! What a message carries, as Python hands it over: anything that has bytes.

use std::ops::{Deref, Range};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView};

/// Bytes that nobody can change, so that they may be read while other threads have the interpreter.
///
/// Those of `bytes`, and of a `memoryview` of `bytes`, are where Python has them. Others have writers: they are copied, as
/// they are when the call begins.
pub struct Payload {
    bytes: PyBackedBytes,
    part: Range<usize>,
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // `part` is of these bytes.
        self.bytes.get(self.part.clone()).unwrap_or_default()
    }
}

impl From<Bound<'_, PyBytes>> for Payload {
    fn from(bytes: Bound<'_, PyBytes>) -> Self {
        let bytes = PyBackedBytes::from(bytes);
        let part = 0..bytes.len();
        Self { bytes, part }
    }
}

impl<'py> FromPyObject<'_, 'py> for Payload {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(bytes.to_owned().into());
        }
        // What has no bytes fails here: `bytes` would take a list of numbers too.
        let buffer = PyUntypedBuffer::get(&object)?;
        if let Some(part) = part_of_bytes(&object, &buffer) {
            return Ok(part);
        }
        let made = object.py().get_type::<PyBytes>().call1((object,))?;
        Ok(made.cast_into::<PyBytes>()?.into())
    }
}

/// What a view shows, if it is one of `bytes`, in one piece.
fn part_of_bytes(object: &Bound<'_, PyAny>, buffer: &PyUntypedBuffer) -> Option<Payload> {
    let view = object.cast::<PyMemoryView>().ok()?;
    let of = view.getattr("obj").ok()?.cast_into::<PyBytes>().ok()?;
    let bytes = PyBackedBytes::from(of);
    let from = (buffer.buf_ptr() as usize).checked_sub(bytes.as_ptr() as usize)?;
    let part = from..from.checked_add(buffer.len_bytes())?;
    let is_there = buffer.is_c_contiguous() && part.end <= bytes.len();
    is_there.then_some(Payload { bytes, part })
}
