//! `docs/embedded.md`, which is made of the cases.

use crate::suite::Topic;

const HEAD: &str = "\
# The embedded API beside a real one

This page is made of the cases in `tests/conformance/`. Each is done to the embedded API and to a real kube-apiserver, and passes when
status codes, warnings and bodies are the same: reasons, messages and details of refusals, every field of objects, and the order of
events. Where a step of a case asks for parts of an answer, these are compared. Masked are times, ages, uids, resource versions, `continue`
tokens and the random ends of generated names, the same value by the same mask. Not compared is what is chance on a real server: the order
of the causes of a refusal, and that of managed fields written within a second.
`cargo test -p configurator-tests --test api_conformance` runs them; `UPDATE_EXPECT=1` rewrites this page.

";

/// The page.
pub fn page(topics: &[Topic]) -> String {
    let cases = || topics.iter().flat_map(|topic| &topic.cases);
    let left_out = cases().filter(|case| case.left_out.is_some()).count();
    let agree = cases().count() - left_out;
    let mut text = format!(
        "{HEAD}{agree} cases agree. {left_out} differ knowingly: they are run as well, and fail should they come to agree.\n\n\
         | topic | agree | left out |\n|---|---|---|\n"
    );
    for topic in topics {
        let out = topic.cases.iter().filter(|c| c.left_out.is_some()).count();
        let row = format!(
            "| {} | {} | {out} |\n",
            topic.topic,
            topic.cases.len() - out
        );
        text.push_str(&row);
    }
    text.push_str("\n## What agrees\n");
    for topic in topics {
        text.push_str(&format!("\n### {}\n\n", topic.topic));
        for case in topic.cases.iter().filter(|case| case.left_out.is_none()) {
            text.push_str(&format!("- {}\n", case.name));
        }
    }
    text.push_str("\n## What is left out\n");
    for topic in topics {
        let out: Vec<_> = topic
            .cases
            .iter()
            .filter_map(|case| Some((&case.name, case.left_out.as_ref()?)))
            .collect();
        if !out.is_empty() {
            text.push_str(&format!("\n### Of: {}\n\n", topic.topic));
        }
        for (name, why) in out {
            text.push_str(&format!("- {name}: {why}\n"));
        }
    }
    text
}
