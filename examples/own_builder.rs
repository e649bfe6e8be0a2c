// A builder of another program: pages made from words, as an image in a store. Nothing in it says that it was queued, began or
// ended; that is told all the same.
//
// ```text
// cargo run -p portolan-ship --example own_builder
// ```

use std::error::Error;
use std::fs;
use std::time::SystemTime;

use camino::Utf8Path;
use portolan_engine::{Journal, JournalOptions, Limits, Run};
use portolan_layout::Store;
use portolan_ship::{BuildSetup, Builder, Built, OwnWork, ShipError, ShipRun, Task, own_artifact};

/// Makes a page of each word.
struct Pages {
    setup: BuildSetup,
    words: Vec<String>,
}

impl Builder for Pages {
    fn build(&self, task: &Task) -> Result<Built, ShipError> {
        let total = self.words.len() as u64;
        for (at, word) in (0..).zip(&self.words) {
            task.progress(at, Some(total), format!("writing {word}"));
            let page = task.scratch().join(format!("{word}.html"));
            fs::write(page, format!("<h1>{word}</h1>\n")).map_err(ShipError::other)?;
        }
        task.log(format!("{total} pages"));
        let (setup, files) = (&self.setup, task.scratch());
        setup.image_of_files("pages", "registry.example/pages", files, task)
    }
}

/// Builds an image of pages into a store, and says what came of it and what happened meanwhile.
pub(crate) fn build(directory: &Utf8Path, words: &[&str]) -> Result<String, Box<dyn Error>> {
    let now = SystemTime::now();
    let run = ShipRun::begin(directory, now)?;
    let setup = BuildSetup::plain(directory, Store::open(directory)?, run.clone(), now)?;
    let words = words.iter().map(|&word| word.to_owned()).collect();
    tokio::runtime::Runtime::new()?.block_on(async {
        let journal = Journal::in_memory(JournalOptions::default());
        let units = Run::new(Limits::default(), journal.clone());
        OwnWork::new(&run, &units).build("pages", &[], Pages { setup, words });
        let report = units.finish().await;
        journal.close();
        let result = own_artifact("pages", "registry.example/pages", &report);
        let mut answer = serde_json::to_string_pretty(&result)?;
        let mut happened = journal.after(0);
        while let Some(batch) = happened.next().await? {
            for record in batch.iter() {
                answer = format!("{answer}\n{}", record.to_json());
            }
        }
        Ok(answer + "\n")
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let path = Utf8Path::from_path(directory.path()).ok_or("the directory is not UTF-8")?;
    let answer = build(path, &["apple", "pear"])?;
    std::io::Write::write_all(&mut std::io::stdout(), answer.as_bytes())?;
    Ok(())
}
