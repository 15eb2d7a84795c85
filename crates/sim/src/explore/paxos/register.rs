//! All schedules of the register by which a configuration is chosen.
