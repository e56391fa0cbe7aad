/// Distinguishes network file systems from local ones.
///
/// Their locks, syncs and renames guarantee less than those of a disk: a lock may hold on one
/// machine only, and a sync may end in another machine's memory.
package enum NetworkFileSystem {
    /// Returns the name of the network file system mounted as this device; nil for other devices.
    ///
    /// - Parameters:
    ///   - device: The device number as stat(2) returns it.
    ///   - mounts: The text of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
    package static func name(ofDevice device: UInt64, in mounts: String) -> String? {
        let major = ((device >> 8) & 0xFFF) | ((device >> 32) & ~0xFFF)
        let minor = (device & 0xFF) | ((device >> 12) & ~0xFF)
        for line in mounts.split(separator: "\n") {
            let fields = line.split(separator: " ")
            // Six fields, optional fields, a hyphen, then the type.
            guard fields.count > 6, fields[2] == "\(major):\(minor)",
                let mark = fields[6...].firstIndex(of: "-"), mark + 1 < fields.count
            else { continue }
            let type = String(fields[mark + 1])
            return isOfNetwork(type) ? type : nil
        }
        return nil
    }

    private static func isOfNetwork(_ type: String) -> Bool {
        guard let prefix = type.firstRange(of: "fuse.") else { return kernelTypes.contains(type) }
        return fuseTypes.contains(String(type[prefix.upperBound...]))
    }

    private static let kernelTypes: Set = [
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
        "orangefs", "smb3", "smbfs",
    ]

    /// The part of a type after `fuse.`.
    private static let fuseTypes: Set = [
        "beegfs", "blobfuse", "blobfuse2", "ceph", "ceph-fuse", "curlftpfs", "davfs", "gcsfuse",
        "glusterfs", "goofys", "juicefs", "moosefs", "mfs", "mountpoint-s3", "rclone", "s3fs",
        "seaweedfs", "smbnetfs", "sshfs",
    ]
}
