//! The Prometheus text format, for values that are read when the page is requested: a series ends with what it is
//! about, such as a deleted certificate, while the recorder would keep it.

use std::fmt::Write;

/// The labels of a sample.
pub(super) type Labels<'a> = Vec<(&'static str, &'a str)>;

/// The text of a metrics page, which is continued.
pub(super) struct Exposition(pub(super) String);

impl Exposition {
    /// Writes a gauge with its samples; nothing if there are none.
    pub(super) fn gauge<'a>(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (Labels<'a>, f64)>) {
        self.metric("gauge", name, help, samples);
    }

    /// Writes a counter with its samples; nothing if there are none.
    pub(super) fn counter<'a>(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (Labels<'a>, f64)>) {
        self.metric("counter", name, help, samples);
    }

    fn metric<'a>(&mut self, kind: &str, name: &str, help: &str, samples: impl IntoIterator<Item = (Labels<'a>, f64)>) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        let text = &mut self.0;
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (labels, value) in samples {
            text.push_str(name);
            for (number, (label, value)) in labels.iter().enumerate() {
                text.push(if number == 0 { '{' } else { ',' });
                let _ = write!(text, "{label}=\"{}\"", escaped_label(value));
            }
            if !labels.is_empty() {
                text.push('}');
            }
            let _ = writeln!(text, " {value}");
        }
        text.push('\n');
    }

    /// Writes a gauge without labels.
    pub(super) fn value(&mut self, name: &str, help: &str, value: f64) {
        self.gauge(name, help, [(Labels::new(), value)]);
    }
}

/// The value of a label as the format asks for it.
fn escaped_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_cannot_end_them() {
        let mut page = Exposition(String::new());
        page.value("one", "One.", 1.0);
        page.gauge("none", "None.", []);
        page.counter("three_total", "Three.", [(vec![("a", "b")], 3.0)]);
        page.gauge("two", "Two.", [(vec![("a", "say \"\\\n\""), ("b", "x")], 1_700_000_000.0)]);
        let expected = "# HELP one One.\n# TYPE one gauge\none 1\n\n\
                        # HELP three_total Three.\n# TYPE three_total counter\nthree_total{a=\"b\"} 3\n\n# HELP two Two.\n# TYPE two gauge\n\
                        two{a=\"say \\\"\\\\\\n\\\"\",b=\"x\"} 1700000000\n\n";
        assert_eq!(page.0, expected);
    }
}
