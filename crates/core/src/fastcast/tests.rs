//! Steps of FastCast, one by one.
