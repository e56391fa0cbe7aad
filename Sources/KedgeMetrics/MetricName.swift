/// All metrics of the service. ``definition`` is a metric's row in the only table of names, types,
/// units, labels and sentences; `docs/METRICS.md` is generated from it.
///
/// No label has an owner, an id, a path or an address: these would be known to each reader of the
/// metrics, and their number has no bound.
///
/// The raw value is the position in the table, so that recording finds its metric without a hash
/// of the name.
package enum MetricName: Int, CaseIterable, Sendable {
    // HTTP.
    case httpRequests
    case httpRequestSeconds
    case httpRequestsInFlight
    case errors
    case connections
    case certificateExpiry
    // Transfers.
    case uploadBytes
    case downloadBytes
    case resumedBytes
    case sessions
    case sessionsCreated
    case sessionsCompleted
    case sessionsCanceled
    case sessionsExpired
    // Stores.
    case chunkCommitSeconds
    case fsyncSeconds
    case finalizeSeconds
    case storeOperationSeconds
    case storageFreeBytes
    case storageReservedBytes
    case garbageWaiting
    // The scrub.
    case damagedBlobs
    case scrubWaitingBlobs
    case scrubbedBlobs
    case scrubbedBytes
    // Identity and limits.
    case authentications
    case authenticationSeconds
    case links
    case quotaRefusals
    case rateLimited
    // The process.
    case buildInfo
    case processStartTime
    case processResidentMemory
    case processOpenDescriptors

    /// The metric's row in the table.
    package var definition: MetricDefinition { Self.table[rawValue] }

    /// The rows in the order of the cases.
    private static let table: [MetricDefinition] =
        httpTable + transferTable + storeTable + scrubTable + identityTable + processTable

    private static let httpTable: [MetricDefinition] = [
        .counter(
            .httpRequests, "kedge_http_requests_total",
            labels: ["method", "route", "protocol", "status"],
            "Answered requests; route is a pattern, status a class such as 2xx."),
        .histogram(
            .httpRequestSeconds, "kedge_http_request_seconds",
            labels: ["method", "route", "protocol"], buckets: HistogramBuckets.request,
            "Time from the head of a request to the end of its response."),
        .gauge(
            .httpRequestsInFlight, "kedge_http_requests_in_flight",
            "Requests whose response has not ended."),
        .counter(
            .errors, "kedge_errors_total", labels: ["code"],
            "Responses with an error, by its code."),
        .gauge(.connections, "kedge_connections", "Open connections of clients."),
        .gauge(
            .certificateExpiry, "kedge_tls_certificate_expiry_seconds", unit: .seconds,
            "Unix time at which the TLS certificate in use expires."),
    ]

    private static let transferTable: [MetricDefinition] = [
        .counter(
            .uploadBytes, "kedge_upload_bytes_total", labels: ["protocol"], unit: .bytes,
            "Bytes of uploads that were received and stored."),
        .counter(
            .downloadBytes, "kedge_download_bytes_total", unit: .bytes,
            "Bytes of files that were sent to clients."),
        .counter(
            .resumedBytes, "kedge_resumed_bytes_total", labels: ["protocol"], unit: .bytes,
            "Bytes that a continued upload did not have to send again."),
        .gauge(
            .sessions, "kedge_sessions", labels: ["state"],
            "Upload sessions in the metadata store, by state."),
        .counter(
            .sessionsCreated, "kedge_sessions_created_total", labels: ["protocol"],
            "Upload sessions that were created."),
        .counter(
            .sessionsCompleted, "kedge_sessions_completed_total", labels: ["protocol"],
            "Upload sessions that became a file."),
        .counter(
            .sessionsCanceled, "kedge_sessions_canceled_total", labels: ["protocol"],
            "Upload sessions that a client canceled."),
        .counter(
            .sessionsExpired, "kedge_sessions_expired_total", labels: ["protocol"],
            "Upload sessions that expired."),
    ]

    private static let storeTable: [MetricDefinition] = [
        .histogram(
            .chunkCommitSeconds, "kedge_chunk_commit_seconds", buckets: HistogramBuckets.storage,
            "Time from the last byte of a chunk until its row is durable."),
        .histogram(
            .fsyncSeconds, "kedge_fsync_seconds", buckets: HistogramBuckets.storage,
            "Time of one sync of a file or a directory to the disk."),
        .histogram(
            .finalizeSeconds, "kedge_finalize_seconds", buckets: HistogramBuckets.finalize,
            "Time from the start of a finalize until the file exists."),
        .histogram(
            .storeOperationSeconds, "kedge_store_operation_seconds",
            labels: ["store", "operation"], buckets: HistogramBuckets.storage,
            "Time of one operation of a store, with its waiting time."),
        .gauge(
            .storageFreeBytes, "kedge_storage_free_bytes", unit: .bytes,
            "Bytes that uploads may still use on the disk."),
        .gauge(
            .storageReservedBytes, "kedge_storage_reserved_bytes", unit: .bytes,
            "Bytes that open upload sessions have reserved."),
        .gauge(
            .garbageWaiting, "kedge_garbage_waiting",
            "Blobs and staging areas that wait for their removal."),
    ]

    private static let scrubTable: [MetricDefinition] = [
        .gauge(
            .damagedBlobs, "kedge_damaged_blobs",
            "Stored blobs with wrong or missing bytes."),
        .gauge(
            .scrubWaitingBlobs, "kedge_scrub_waiting_blobs",
            "Blobs that the scrub has not read since they were stored."),
        .counter(
            .scrubbedBlobs, "kedge_scrub_blobs_total", labels: ["result"],
            "Blobs that the scrub has read; result is verified, damaged or restored."),
        .counter(
            .scrubbedBytes, "kedge_scrub_bytes_total", unit: .bytes,
            "Bytes that the scrub has read."),
    ]

    private static let identityTable: [MetricDefinition] = [
        .counter(
            .authentications, "kedge_auth_total", labels: ["kind", "outcome"],
            "Checked credentials; outcome is accepted or refused."),
        .histogram(
            .authenticationSeconds, "kedge_auth_seconds", labels: ["kind"],
            buckets: HistogramBuckets.authentication,
            "Time of the check of one credential."),
        .counter(
            .links, "kedge_links_total", labels: ["kind", "outcome"],
            "Made and used links; outcome is created, accepted or refused."),
        .counter(
            .quotaRefusals, "kedge_quota_refusals_total", labels: ["kind"],
            "Uploads that a quota refused."),
        .counter(
            .rateLimited, "kedge_rate_limited_total", labels: ["kind"],
            "Requests that a rate limit refused."),
    ]

    private static let processTable: [MetricDefinition] = [
        .gauge(
            .buildInfo, "kedge_build_info", labels: ["version"],
            "Always 1; the label has the version of the program."),
        .gauge(
            .processStartTime, "process_start_time_seconds", unit: .seconds,
            "Unix time at which the process started."),
        .gauge(
            .processResidentMemory, "process_resident_memory_bytes", unit: .bytes,
            "Resident memory of the process."),
        .gauge(
            .processOpenDescriptors, "process_open_fds",
            "Open file descriptors of the process."),
    ]
}
