//! Usage errors. clap quotes arguments unescaped, and a terminal would interpret control characters in them (D30).

use clap::{
    Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue},
};

use crate::text::{escaped, has_token, steers, without_tokens};

/// Escapes the arguments that a usage error quotes, and hides API tokens in them.
pub(super) fn tamed(mut error: Error) -> Error {
    let quoted: Vec<(ContextKind, ContextValue)> = error.context().map(|(kind, value)| (kind, value.clone())).collect();
    if !quoted.iter().any(|(_, value)| is_unfit(value)) {
        return error;
    }
    for (kind, value) in quoted {
        let shown = match value {
            ContextValue::String(text) => ContextValue::String(fit(&text)),
            ContextValue::Strings(texts) => ContextValue::Strings(texts.iter().map(|text| fit(text)).collect()),
            // A tip can quote the argument between colour codes, which look like those of the argument.
            ContextValue::StyledStrs(tips) => {
                let plain = |tip: &StyledStr| StyledStr::from(fit(&tip.to_string()));
                ContextValue::StyledStrs(tips.iter().map(plain).collect())
            }
            // The usage contains only option names.
            _ => continue,
        };
        error.insert(kind, shown);
    }
    error
}

/// The long name of the option and the value that an error refuses, if it is such an error.
pub(super) fn invalid_value(error: &Error) -> Option<(String, String)> {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (argument, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    let option = argument.strip_prefix("--")?.split([' ', '=']).next()?;
    Some((option.to_owned(), value.to_owned()))
}

fn fit(text: &str) -> String {
    escaped(&without_tokens(text)).into_owned()
}

fn is_unfit(value: &ContextValue) -> bool {
    let is_unfit = |text: &String| text.contains(steers) || has_token(text);
    match value {
        ContextValue::String(text) => is_unfit(text),
        ContextValue::Strings(texts) => texts.iter().any(is_unfit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn an_invalid_value_has_the_name_of_its_option() {
        let role = Arg::new("role").short('r').long("role").value_name("ROLE").value_parser(["admin", "viewer"]);
        let number = Arg::new("limit").long("limit").value_parser(clap::value_parser!(u16));
        let command = Command::new("test").arg(role).arg(number);
        for (arguments, expected) in [
            (["test", "--role=king"].as_slice(), Some(("role", "king"))),
            (&["test", "--limit", "few"], Some(("limit", "few"))),
            (&["test", "--nothing"], None),
        ] {
            let error = command.clone().try_get_matches_from(arguments).err();
            let found = error.as_ref().and_then(invalid_value);
            let found = found.as_ref().map(|(option, value)| (option.as_str(), value.as_str()));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn no_argument_reaches_the_terminal_as_it_is() {
        let command = || Command::new("test").arg(Arg::new("role").long("role").value_parser(["admin", "viewer"]));
        for arguments in [&["--\u{1b}[31mx\u{202e}"] as &[&str], &["--role", "\u{1b}[31mx\u{202e}"]] {
            let parsed = command().try_get_matches_from(["test"].iter().chain(arguments));
            let text = parsed.map_err(|error| tamed(error).render().ansi().to_string()).err().unwrap_or_default();
            assert!(text.contains("\\u{1b}[31mx\\u{202e}"), "{text:?}");
            assert!(!text.contains("\u{1b}[31mx") && !text.contains('\u{202e}'), "{text:?}");
        }
    }
}
