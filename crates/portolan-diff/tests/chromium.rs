//! The HTML page, opened in a real browser.

mod sides;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use portolan_diff::render::html;

use sides::{compared, pull_request_report};

/// The browser, where it is installed; in CI it must be.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn chromium() -> Option<PathBuf> {
    let directories = env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = env::split_paths(&directories)
        .flat_map(|directory| names.map(|name| directory.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        assert!(env::var_os("CI").is_none(), "chromium is not installed");
        eprintln!("skipped: chromium is not installed");
    }
    found
}

/// The document as the browser has it after reading the page.
fn opened(browser: &PathBuf, page: &str) -> String {
    opened_at(browser, page, 1280)
}

/// The document as a browser of this width has it.
fn opened_at(browser: &PathBuf, page: &str, width: u32) -> String {
    let directory = env::temp_dir().join(format!("portolan-page-{}-{width}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory can be made");
    let file = directory.join("page.html");
    fs::write(&file, page).expect("it can be written");
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .arg(format!(
            "--user-data-dir={}",
            directory.join("profile").display()
        ))
        .arg(format!("--window-size={width},900"))
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser starts");
    let _ = fs::remove_dir_all(&directory);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_browser_reads_the_page_as_it_was_written() {
    let Some(browser) = chromium() else { return };
    let report = pull_request_report();
    let dom = opened(&browser, &html(&report, "main → work tree"));
    assert!(dom.contains("<title>main → work tree</title>"), "{dom}");
    assert_eq!(dom.matches("<details ").count(), report.changes.len());
    assert!(
        dom.contains("<ins>ghcr.io/stefanprodan/podinfo:6.6.1</ins>"),
        "{dom}"
    );

    let config = |value: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: x}}, data: {{page: {value:?}}}}}"
        )
    };
    let hostile =
        "</pre><script>document.title = 'taken over'</script><img src=x onerror=alert(1)>";
    let dom = opened(
        &browser,
        &html(&compared(&config("calm"), &config(hostile)), "diff"),
    );
    assert!(dom.contains("<title>diff</title>"), "the title stays");
    assert!(!dom.contains("<script>") && !dom.contains("<img"), "{dom}");
}

/// What a page looks like is asked of the browser by a script that the test adds, without the policy that forbids it.
#[test]
fn both_sides_stand_beside_each_other_where_there_is_room() {
    let Some(browser) = chromium() else { return };
    let page = html(&pull_request_report(), "main → work tree");
    let script = "<script>addEventListener('load', () => {\
        const box = name => document.querySelector(`pre.both ${name}`).getBoundingClientRect();\
        const [old, is] = [box('del'), box('ins')];\
        const side = old.top === is.top && old.right <= is.left;\
        const below = old.bottom <= is.top && old.left === is.left;\
        const fits = document.documentElement.scrollWidth <= innerWidth;\
        document.title = `${side ? 'beside' : below ? 'below' : 'odd'} ${fits}`;\
    })</script>";
    let begin = page.find("<meta http-equiv").expect("a policy");
    let end = begin + page[begin..].find('>').expect("its end") + 1;
    let scripted = format!("{}{script}{}", &page[..begin], &page[end..]);
    for (width, expected) in [
        (1800, "beside true"),
        (1000, "below true"),
        (600, "below true"),
    ] {
        let dom = opened_at(&browser, &scripted, width);
        assert!(
            dom.contains(&format!("<title>{expected}</title>")),
            "{width}: {dom}"
        );
    }
}
