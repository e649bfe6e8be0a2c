//! Books that include books of other Git repositories: pinned to a commit, and found again without the repository.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use camino::Utf8PathBuf;
use portolan_fleet::{
    Book, BookSource, GitIncludes, IncludePolicy, MemoryFiles, RecordedFiles, Work, compile,
};
use portolan_git::FetchOptions;
use portolan_modules::BookFiles;

const HEAD: &str = "apiVersion: v1alpha\nkind: TaskBook\nmetadata: {name: web}\nspec:\n";

/// Addresses of this machine only.
struct Local;

impl IncludePolicy for Local {
    fn options(&self, url: &str) -> Result<FetchOptions, String> {
        if url.contains("forbidden") {
            return Err("nothing is fetched from there".to_owned());
        }
        Ok(FetchOptions {
            allow_local: true,
            ..FetchOptions::default()
        })
    }
}

/// A directory with a repository `books`, whose tag `v3` has a book with a template.
struct Bed {
    _scratch: tempfile::TempDir,
    path: PathBuf,
}

impl Bed {
    fn new() -> Self {
        let scratch = tempfile::tempdir().expect("a directory");
        let bed = Self {
            path: scratch.path().to_owned(),
            _scratch: scratch,
        };
        fs::create_dir_all(bed.path.join("books/web/templates")).expect("made");
        fs::create_dir_all(bed.path.join("books/shared")).expect("made");
        bed.git(&["init", "--quiet", "--initial-branch", "main"]);
        bed.write(
            "web/common.yaml",
            &format!(
                "{HEAD}  inputs: {{port: {{type: int}}}}\n  steps:\n  - {{name: conf, put: {{path: /conf, template: templates/conf.j2}}}}\n  \
                 - {{name: more, include: {{path: ../shared/more.yaml}}}}\n"
            ),
        );
        bed.write(
            "web/templates/conf.j2",
            "{% include 'templates/part.j2' %}{{ inputs.port }}\n",
        );
        bed.write("web/templates/part.j2", "port ");
        bed.write(
            "shared/more.yaml",
            &format!("{HEAD}  steps:\n  - {{name: last, put: {{path: /more, content: x}}}}\n"),
        );
        bed.commit("v3");
        bed
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path.join("books").join(path), text).expect("written");
    }

    fn commit(&self, tag: &str) -> String {
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "-m", "books"]);
        self.git(&["tag", "--force", tag]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.path.join("books"), args)
    }

    fn url(&self) -> String {
        format!("file://{}/books", self.path.display())
    }

    fn files(&self) -> Arc<RecordedFiles> {
        let mirrors = Utf8PathBuf::from_path_buf(self.path.join("mirrors")).expect("UTF-8");
        let includes = GitIncludes::new(Arc::new(MemoryFiles::default()), mirrors, Local);
        Arc::new(RecordedFiles::new(Arc::new(includes)))
    }

    fn including(&self, reference: &str, path: &str) -> String {
        let url = self.url();
        format!(
            "{HEAD}  steps:\n  - {{name: common, include: {{git: '{url}', ref: '{reference}', path: {path}, inputs: {{port: 80}}}}}}\n"
        )
    }

    fn fault(&self, text: &str) -> String {
        let faults = read(text, self.files()).err().unwrap_or_default();
        faults
            .join("\n")
            .replace(self.path.to_str().expect("UTF-8"), "BED")
    }
}

fn git(directory: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(args);
    for name in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{name}_NAME"), "Ada");
        command.env(format!("GIT_{name}_EMAIL"), "ada@example.com");
    }
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output();
    let output = output.expect("git runs");
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn read(text: &str, files: Arc<dyn BookFiles>) -> Result<Book, Vec<String>> {
    let mut source = BookSource::new("book.yaml", text, files);
    source.modules = support::MODULES;
    compile(&source).map_err(|faults| faults.iter().map(ToString::to_string).collect())
}

#[test]
fn a_book_of_another_repository_comes_with_its_files_and_is_found_again_without_it() {
    let bed = Bed::new();
    let text = bed.including("v3", "web/common.yaml");
    let files = bed.files();
    let book = read(&text, Arc::clone(&files) as Arc<dyn BookFiles>).expect("a book");
    assert!(book.step("common/more/last").is_some());
    let conf = book.step("common/conf").expect("a step");
    let Work::Module(call) = &conf.work else {
        unreachable!("a module")
    };
    let template = call.parameters["template"].as_str().expect("a path");
    assert!(
        template.starts_with("@git/books@v3-") && template.ends_with("/web/templates/conf.j2"),
        "{template}"
    );
    let recorded = files.take();
    let commit = recorded
        .iter()
        .find(|(path, _)| path.ends_with(".commit"))
        .map(|(_, commit)| String::from_utf8_lossy(commit).into_owned());
    assert_eq!(commit, Some(bed.git(&["rev-parse", "v3"])));
    // The repository changes and then is gone: what was recorded gives the same book.
    bed.write("web/templates/part.j2", "other ");
    bed.commit("v3");
    let moved = read(&text, bed.files()).expect("a book");
    assert_ne!(
        moved.digest, book.digest,
        "the commit is part of the digest"
    );
    fs::remove_dir_all(bed.path.join("books")).expect("removed");
    let frozen = recorded
        .iter()
        .map(|(path, content)| (path.as_str(), content.as_ref()));
    let again = read(&text, Arc::new(MemoryFiles::of_bytes(frozen))).expect("a book");
    assert_eq!(again.digest, book.digest);
}

#[test]
fn a_ref_is_a_tag_a_branch_or_a_commit() {
    let bed = Bed::new();
    let commit = bed.git(&["rev-parse", "HEAD"]);
    for reference in ["v3", "main", "refs/heads/main", commit.as_str()] {
        let text = bed.including(reference, "web/common.yaml");
        assert_eq!(read(&text, bed.files()).err(), None, "{reference}");
    }
    // A commit that was fetched is not asked for again.
    fs::remove_dir_all(bed.path.join("books")).expect("removed");
    let text = bed.including(&commit, "web/common.yaml");
    assert_eq!(read(&text, bed.files()).err(), None);
    let fault = bed.fault(&bed.including("v3", "web/common.yaml"));
    assert!(
        fault.starts_with("book.yaml:6:35: cannot include from `file://BED/books`: "),
        "{fault}"
    );
}

#[test]
fn what_cannot_be_included_is_told_at_its_place() {
    let bed = Bed::new();
    let fault = bed.fault(&bed.including("v4", "web/common.yaml"));
    assert_eq!(
        fault,
        "book.yaml:6:35: cannot include from `file://BED/books`: `file://BED/books` has no tag or branch `v4`, but `v3`"
    );
    let fault = bed.fault(&bed.including("v3", "../outside.yaml"));
    assert!(
        fault.ends_with("the path leads out of the repository"),
        "{fault}"
    );
    let fault = bed.fault(&bed.including("v3", "web/none.yaml"));
    assert!(fault.contains("there is no file"), "{fault}");
    let step = |include: &str| format!("{HEAD}  steps:\n  - {{name: a, include: {include}}}\n");
    for (include, message) in [
        ("{git: 'file:///x', path: a.yaml}", "needs a `ref`"),
        (
            "{git: 'https://ada:secret@git.example/x', ref: v1, path: a.yaml}",
            "must not contain a login",
        ),
        (
            "{git: 'https://git.example/{{ vars.x }}', ref: v1, path: a.yaml}",
            "are fixed texts",
        ),
        (
            "{git: 'https://forbidden.example/x', ref: v1, path: a.yaml}",
            "nothing is fetched from there",
        ),
        (
            "{git: 'ssh://git.example/x', ref: v1, path: a.yaml}",
            "only http and https",
        ),
    ] {
        let fault = bed.fault(&step(include));
        assert!(
            fault.contains(message) && !fault.contains("secret"),
            "{fault}"
        );
    }
}

#[test]
fn books_of_a_repository_name_nothing_outside_of_it() {
    let bed = Bed::new();
    for step in [
        "include: {path: ../../../book.yaml}",
        "put: {path: /a, template: ../../../secret}",
    ] {
        let text = format!("{HEAD}  steps:\n  - {{name: out, {step}}}\n");
        bed.write("web/out.yaml", &text);
        bed.commit("v3");
        let fault = bed.fault(&bed.including("v3", "web/out.yaml"));
        assert!(fault.contains("the repository"), "{fault}");
    }
}
