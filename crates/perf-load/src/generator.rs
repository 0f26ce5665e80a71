//! Workers, schedules and sequences.
