//! A Ceph of the benchmark's own, by `dev/ceph.sh`, and what its OSDs take.

use std::path::PathBuf;
use std::process::Command;

use marquetry_bench::{clock, program};

use crate::Options;

/// A cluster. It is stopped when it is dropped.
pub(crate) struct Cluster {
    script: PathBuf,
    directory: PathBuf,
    /// The path of its configuration.
    pub(crate) configuration: String,
}

impl Cluster {
    /// Starts one of so many OSDs.
    pub(crate) fn start(options: &Options, osds: u64) -> Result<Cluster, String> {
        let directory = options.out.join("ceph-cluster");
        std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let absolute =
            |path: &PathBuf| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
        let (directory, classes) = (absolute(&directory)?, absolute(&options.classes)?);
        let mut start = Command::new(&options.ceph);
        start.arg("start").arg(&directory).args(["--osds", &osds.to_string(), "--store", &options.store]);
        let configuration = directory.join("ceph.conf").display().to_string();
        let cluster = Cluster { script: options.ceph.clone(), directory, configuration };
        // Its output is that of daemons, too, which keep it open.
        let log = std::fs::File::create(cluster.directory.with_extension("log"))
            .map_err(|error| error.to_string())?;
        let begun = start.arg("--classes").arg(&classes).stdout(log).status();
        match begun {
            Ok(status) if status.success() => Ok(cluster),
            Ok(status) => Err(format!("the cluster does not start: {status}")),
            Err(error) => Err(format!("{}: {error}", options.ceph.display())),
        }
    }

    fn process(&self) -> Result<PathBuf, String> {
        let path = self.directory.join("run/osd.0.pid");
        let pid = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(PathBuf::from("/proc").join(pid.trim()))
    }

    /// From now on, the peak of the first OSD's memory is what it has now: how much that is, in MiB.
    pub(crate) fn forget_peak(&self) -> Result<f64, String> {
        let path = self.process()?.join("clear_refs");
        std::fs::write(&path, "5").map_err(|error| format!("{}: {error}", path.display()))?;
        self.peak_mib()
    }

    /// The most memory that the first OSD has had since.
    pub(crate) fn peak_mib(&self) -> Result<f64, String> {
        let path = self.process()?.join("status");
        let status =
            std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let kib = clock::peak_memory_kib(&status).ok_or("an OSD's memory is not known")?;
        Ok(f64::from(u32::try_from(kib).map_err(|error| error.to_string())?) / 1024.0)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let mut stop = Command::new(&self.script);
        if let Err(error) = program::output(stop.arg("stop").arg(&self.directory)) {
            eprintln!("the cluster is not stopped: {error}");
        }
    }
}
