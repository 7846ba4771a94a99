//! Names of new modules: those of Kubernetes, as far as the language can have them.

use crate::error::BuildError;
use crate::language::Language;

/// The longest; it becomes part of names of Kubernetes.
pub(crate) const MAX_NAME: usize = 50;

/// What cargo takes for no crate: words of the language, crates that are always there, and what a new module depends on.
const RUST: &str = "abstract alloc as async await become box break build const continue core crate deps do dyn else enum examples extern \
    false final fn for gen if impl in incremental let loop macro match mod move mut override priv proc_macro pub ref return self serde_json \
    static std struct super test trait true try type typeof union unsafe unsized use virtual where while yield";
/// Folders that Go does not import from.
const GO: &str = "internal testdata vendor";
/// Packages that build a module, which npm does not install into one of the same name.
const JAVASCRIPT: &str = "componentize_qjs esbuild";
/// Words of the language, its library, which the module would hide from itself, and what builds it.
const PYTHON: &str = "abc aifc and antigravity argparse array as assert ast async asyncio asyncore atexit audioop await base64 bdb binascii \
    bisect break builtins bz2 calendar cgi cgitb chunk class cmath cmd code codecs codeop collections colorsys compileall componentize_py_types \
    compression concurrent configparser configurator_entry contextlib contextvars continue copy copyreg crypt csv ctypes curses dataclasses \
    datetime dbm decimal def del difflib dis distutils doctest elif else email encodings ensurepip enum errno except faulthandler fcntl filecmp \
    fileinput finally fnmatch for fractions from ftplib functools gc genericpath getopt getpass gettext glob global graphlib grp gzip hashlib \
    heapq hmac html http idlelib if imaplib imghdr import importlib in inspect io ipaddress is itertools json keyword lambda linecache locale \
    logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder multiprocessing netrc nis nntplib nonlocal not ntpath numbers opcode \
    operator optparse or os ossaudiodev pass pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint \
    profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri raise random re readline reprlib resource return rlcompleter \
    runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile \
    sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile \
    telnetlib tempfile termios textwrap this threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc try tty turtle \
    types typing unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser while winreg winsound wit_world with wsgiref xdrlib \
    xml xmlrpc yield zipapp zipfile zipimport zlib zoneinfo";
/// The SDK, by its own name.
const SDK: &str = "configurator_sdk";

/// Whether a new module may be called so.
///
/// # Errors
/// When it is no name, or means something else in the language.
pub(crate) fn check(name: &str, language: Language) -> Result<(), BuildError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_plain)
        && !name.ends_with('-')
        && name.len() <= MAX_NAME;
    if !is_name {
        return Err(BuildError::Name {
            name: name.to_owned(),
            limit: MAX_NAME,
        });
    }
    let reserved = match language {
        Language::Rust => RUST,
        Language::Go => GO,
        Language::JavaScript => JAVASCRIPT,
        Language::Python => PYTHON,
        Language::C => "",
    };
    // As the language's own names have it.
    let own = name.replace('-', "_");
    let mut reserved = reserved.split_whitespace().chain([SDK]);
    match reserved.any(|reserved| reserved == own) {
        true => Err(BuildError::Reserved {
            name: name.to_owned(),
            language,
        }),
        false => Ok(()),
    }
}

/// What files are called after: the last part of the name of a module, as in `@team/greeter` or `example.com/greeter`.
///
/// # Errors
/// When nothing is left that a file can be called.
pub(crate) fn of_file(name: &str) -> Result<String, String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    match last {
        "" | "." | ".." => Err(format!(
            "the name {name:?} ends in nothing that a file can be called"
        )),
        last => Ok(last.replace('-', "_")),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn names_are_those_of_kubernetes() {
        for good in ["a", "pod-config", "v2"] {
            check(good, Language::Rust).unwrap();
        }
        for bad in [
            "",
            "-a",
            "a-",
            "2b",
            "Web",
            "a_b",
            "a/b",
            "é",
            &"a".repeat(51),
        ] {
            assert!(check(bad, Language::Rust).is_err(), "{bad}");
        }
        expect![[r#""../x" is no name for a module: lower-case letters, digits and hyphens, a letter first, at most 50 characters"#]]
            .assert_eq(&check("../x", Language::Rust).unwrap_err().to_string());
    }

    #[test]
    fn a_name_means_nothing_else_in_the_language() {
        let refused = |name: &str, language, expected: Expect| {
            expected.assert_eq(&check(name, language).unwrap_err().to_string());
        };
        refused(
            "class",
            Language::Python,
            expect![
                "\"class\" cannot be the name of a module in Python, where it means something else: choose another, such as class-config"
            ],
        );
        refused(
            "proc-macro",
            Language::Rust,
            expect![
                "\"proc-macro\" cannot be the name of a module in Rust, where it means something else: choose another, such as proc-macro-config"
            ],
        );
        for (name, language) in [
            ("json", Language::Python),
            ("fn", Language::Rust),
            ("internal", Language::Go),
            ("esbuild", Language::JavaScript),
        ] {
            assert!(check(name, language).is_err(), "{name}");
            check(name, Language::C).unwrap();
        }
        for language in Language::ALL {
            assert!(check("configurator-sdk", language).is_err(), "{language}");
        }
    }

    #[test]
    fn files_are_called_after_the_last_part() {
        for (name, expected) in [
            ("pod-config", "pod_config"),
            ("@team/greeter", "greeter"),
            ("../../x", "x"),
            ("a\\b", "b"),
        ] {
            assert_eq!(of_file(name).as_deref(), Ok(expected));
        }
        for bad in ["", "..", "a/", "a/.."] {
            assert!(of_file(bad).is_err(), "{bad}");
        }
    }
}
