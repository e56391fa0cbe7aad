/// Restarts the download within the same run.
struct DownloadRestart: Error {
    enum Reason {
        /// The record is already reset, or needs no reset.
        case prepared
        /// The server has another version; the record's progress is to be discarded.
        case remoteChanged(ServerAnswer?)
    }

    var reason = Reason.prepared
    /// The error to report once there were too many restarts.
    let error: TransferError
}
