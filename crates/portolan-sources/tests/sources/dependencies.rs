//! Filling a chart's `charts/` directory.

use std::time::{Duration, UNIX_EPOCH};

use portolan_helm::Package;
use portolan_helm::lock::build_plan;
use portolan_sources::{Access, lock_text};
use portolan_testbed::{HttpServer, Reply};
use portolan_vfs::Memory;

use crate::desk::{Desk, archive};

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";

fn server() -> HttpServer {
    HttpServer::start(|request| match request.path() {
        "/index.yaml" => {
            Reply::ok("apiVersion: v1\nentries:\n  db:\n  - {version: 2.3.4, urls: [db.tgz]}\n")
        }
        "/db.tgz" => Reply::ok(archive(&[(
            "db/Chart.yaml",
            "apiVersion: v2\nname: db\nversion: 2.3.4\n",
        )])),
        _ => Reply::status(404),
    })
}

fn chart(server: &HttpServer, repository_of_lib: &str) -> Memory {
    let dependencies = format!(
        "dependencies:\n- {{name: db, version: ^2, repository: '{}'}}\n\
         - {{name: lib, version: 0.x.x, repository: '{repository_of_lib}'}}\n",
        server.url()
    );
    [
        ("/web/Chart.yaml", format!("{CHART}{dependencies}")),
        (
            "/lib/Chart.yaml",
            "apiVersion: v2\nname: lib\nversion: 0.1.0\n".to_owned(),
        ),
        ("/lib/.helmignore", "secret.txt\n".to_owned()),
        ("/lib/secret.txt", "x".to_owned()),
        ("/lib/templates/_lib.tpl", String::new()),
    ]
    .into_iter()
    .collect()
}

#[tokio::test]
async fn dependencies_come_from_repositories_and_directories() {
    let server = server();
    let files = chart(&server, "file://../lib");
    let package = Package::load(&files, "/web".into()).unwrap();
    let wanted = build_plan(&package).unwrap();
    let desk = Desk::new();
    let brought = desk
        .open()
        .dependencies(&files, "/web".into(), &wanted, &Access::default())
        .await
        .unwrap();
    let names: Vec<_> = brought
        .iter()
        .map(portolan_sources::VendoredChart::file_name)
        .collect();
    assert_eq!(names, ["db-2.3.4.tgz", "lib-0.1.0.tgz"]);
    let lib = Package::from_archive(&brought[1].content).unwrap();
    assert_eq!(lib.templates.len(), 1);
    assert!(lib.files.iter().all(|file| file.name != "secret.txt"));

    let listed = package.metadata.dependencies.unwrap();
    let text = lock_text(&listed, &brought, UNIX_EPOCH + Duration::from_hours(24));
    assert!(
        text.starts_with("dependencies:\n- name: db\n  repository: http://"),
        "{text}"
    );
    assert!(
        text.ends_with("generated: \"1970-01-02T00:00:00Z\"\n"),
        "{text}"
    );
}

#[tokio::test]
async fn a_repository_by_name_is_refused_with_the_reason() {
    let server = server();
    let files = chart(&server, "@stable");
    let package = Package::load(&files, "/web".into()).unwrap();
    let error = Desk::new()
        .open()
        .dependencies(
            &files,
            "/web".into(),
            &build_plan(&package).unwrap(),
            &Access::default(),
        )
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot bring the dependency `lib` from `@stable`: repositories by name are known to Helm alone; write the address"
    );
}
