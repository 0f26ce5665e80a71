use crate::Engine;

impl Engine {
    /// All metric families in Prometheus text form.
    pub fn metrics_text(&self) -> String {
        String::new()
    }
}
