// A deployer of another program: a manifest that is put where a kubelet looks for pods of its own. Nothing in it says that it was
// queued, began or ended; that is told all the same.
//
// ```text
// cargo run -p portolan-ship --example own_deployer
// ```

use std::error::Error;
use std::fs;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_engine::{Journal, JournalOptions, Limits, Run};
use portolan_ship::{DeployError, DeployedStep, Deployer, OwnWork, ShipRun, Task, own_step};

/// Puts a manifest into a directory.
struct StaticPod {
    manifest: String,
    directory: Utf8PathBuf,
}

impl Deployer for StaticPod {
    fn deploy(&self, task: &Task) -> Result<DeployedStep, DeployError> {
        let place = self.directory.join("web.yaml");
        if fs::read_to_string(&place).is_ok_and(|known| known == self.manifest) {
            task.log(format!("{place} is what it should be"));
        } else {
            // A kubelet never sees half of it.
            let whole = self.directory.join(".web.yaml");
            fs::write(&whole, &self.manifest).map_err(DeployError::other)?;
            fs::rename(whole, place).map_err(DeployError::other)?;
        }
        Ok(DeployedStep {
            objects: 1,
            ..DeployedStep::default()
        })
    }
}

/// Deploys a manifest to a directory, and says what came of it and what happened meanwhile.
pub(crate) fn deploy(
    store: &Utf8Path,
    directory: &Utf8Path,
    manifest: &str,
) -> Result<String, Box<dyn Error>> {
    let run = ShipRun::begin(store, SystemTime::now())?;
    let deployer = StaticPod {
        manifest: manifest.to_owned(),
        directory: directory.to_owned(),
    };
    tokio::runtime::Runtime::new()?.block_on(async {
        let journal = Journal::in_memory(JournalOptions::default());
        let units = Run::new(Limits::default(), journal.clone());
        OwnWork::new(&run, &units).deploy("web", &[], &[], deployer);
        let report = units.finish().await;
        journal.close();
        let mut answer = serde_json::to_string_pretty(&own_step("web", &report))?;
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
    let manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n";
    let answer = deploy(path, path, manifest)?;
    std::io::Write::write_all(&mut std::io::stdout(), answer.as_bytes())?;
    Ok(())
}
