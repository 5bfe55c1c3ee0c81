//! Messages in the forms of chats. Text comes from manifests and commits, so nothing in it may mention a channel, notify
//! people or hide where a link leads.

use serde_json::json;

/// A message for an incoming webhook of Slack.
pub(super) fn slack(text: &str) -> Vec<u8> {
    // Mentions and links need the brackets.
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    json!({"text": escaped, "unfurl_links": false, "unfurl_media": false}).to_string().into_bytes()
}

/// An Adaptive Card for an incoming webhook of Microsoft Teams. A text run has no Markdown, unlike a text block.
pub(super) fn teams(text: &str) -> Vec<u8> {
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text}]}],
    });
    let attachment =
        json!({"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": null, "content": card});
    json!({"type": "message", "attachments": [attachment]}).to_string().into_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_text_cannot_mention_a_channel_or_hide_a_link() {
        let text = "source `shop`: <!channel> & <https://evil.example|ok> [ok](https://evil.example)";
        let message: Value = serde_json::from_slice(&slack(text)).unwrap();
        let shown = message["text"].as_str().unwrap();
        assert!(shown.starts_with("source `shop`: &lt;!channel&gt; &amp; ") && !shown.contains('<'), "{shown}");
        let message: Value = serde_json::from_slice(&teams(text)).unwrap();
        let content = &message["attachments"][0]["content"];
        assert_eq!((&message["type"], &content["type"]), (&json!("message"), &json!("AdaptiveCard")));
        assert_eq!(content["body"][0]["inlines"][0], json!({"type": "TextRun", "text": text}));
    }
}
