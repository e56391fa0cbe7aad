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
    case rateLimited
    case connections
    // TLS.
    case tlsHandshakes
    case tlsCertificateExpiry
    // Identities.
    case authentications
    case authenticationSeconds
    case keyAge
    // Transfers.
    case uploadBytes
    case downloadBytes
    case writesInFlight
    case uploadInterruptions
    case buffersInUse
    // Sessions.
    case sessions
    case sessionsCreated
    case sessionsCompleted
    case sessionsCanceled
    case uploadDurationSeconds
    case chunkCommitSeconds
    case finalizeSeconds
    case quotaRefusals
    // Stores and the scrub.
    case storeOperationSeconds
    case storeRetries
    case syncSeconds
    case bucketRequests
    case bucketRequestSeconds
    case storageFreeBytes
    case storageReservedBytes
    case garbageWaiting
    case damagedBlobs
    case scrubWaitingBlobs
    case scrubbedBlobs
    case scrubbedBytes
    // The process.
    case buildInfo
    case processStartTime
    case processResidentMemory
    case processOpenDescriptors

    /// The metric's row in the table.
    package var definition: MetricDefinition { Self.table[rawValue] }

    /// The rows in the order of the cases.
    private static let table: [MetricDefinition] =
        httpTable + tlsTable + identityTable + transferTable + sessionTable + storeTable
        + scrubTable + processTable

    private static let httpTable: [MetricDefinition] = [
        .counter(
            .httpRequests, "kedge_http_requests_total",
            labels: ["method", "route", "protocol", "status"],
            "Answered requests; route is a pattern, status a class such as 2xx."),
        .histogram(
            .httpRequestSeconds, "kedge_http_request_seconds",
            labels: ["method", "route", "protocol"], buckets: HistogramBuckets.request,
            "Time from the head of a request until its response begins; uploads include their body."
        ),
        .gauge(
            .httpRequestsInFlight, "kedge_http_requests_in_flight",
            "Requests whose response has not begun."),
        .counter(
            .errors, "kedge_errors_total", labels: ["code"],
            "Responses with an error, by its code."),
        .counter(
            .rateLimited, "kedge_rate_limited_total", labels: ["kind"],
            "Requests above a rate; kind is requests, creates or authentication."),
        .gauge(.connections, "kedge_connections", "Open connections of clients."),
    ]

    private static let tlsTable: [MetricDefinition] = [
        .counter(
            .tlsHandshakes, "kedge_tls_handshakes_total", labels: ["outcome"],
            "Ended TLS handshakes; outcome is completed, failed, aborted by the client, or timeout."
        ),
        .gauge(
            .tlsCertificateExpiry, "kedge_tls_certificate_expiry_seconds", unit: .seconds,
            "Unix time at which the certificate in use expires; absent without TLS."),
    ]

    private static let identityTable: [MetricDefinition] = [
        .counter(
            .authentications, "kedge_auth_total", labels: ["kind", "outcome"],
            "Requests whose credential was checked; outcome is accepted, refused or failed."),
        .histogram(
            .authenticationSeconds, "kedge_auth_seconds", labels: ["kind"],
            buckets: HistogramBuckets.authentication, "Time to check the credential of a request."),
        .gauge(
            .keyAge, "kedge_jwks_age_seconds", unit: .seconds,
            "Time since the keys of an issuer were fetched; of several, the longest."),
    ]

    private static let transferTable: [MetricDefinition] = [
        .counter(
            .uploadBytes, "kedge_upload_bytes_total", labels: ["protocol"], unit: .bytes,
            "Bytes of bodies of uploads that were received."),
        .counter(
            .downloadBytes, "kedge_download_bytes_total", unit: .bytes,
            "Bytes of files that were sent to clients."),
        .gauge(
            .writesInFlight, "kedge_writes_in_flight",
            "Request bodies that are being written."),
        .counter(
            .uploadInterruptions, "kedge_upload_interruptions_total",
            "Request bodies with bytes of files that ended with an error."),
        .gauge(
            .buffersInUse, "kedge_buffers_in_use_bytes", unit: .bytes,
            "Memory that is lent to request bodies."),
    ]

    private static let sessionTable: [MetricDefinition] = [
        .gauge(
            .sessions, "kedge_sessions", labels: ["state"],
            "Unfinished sessions; state is open or finalizing."),
        .counter(
            .sessionsCreated, "kedge_sessions_created_total", "Sessions that were created."),
        .counter(
            .sessionsCompleted, "kedge_sessions_completed_total",
            "Sessions that became a file."),
        .counter(
            .sessionsCanceled, "kedge_sessions_canceled_total",
            "Cancellations of sessions, also repeated ones."),
        .histogram(
            .uploadDurationSeconds, "kedge_upload_duration_seconds",
            buckets: HistogramBuckets.upload,
            "Time from the creation of a session until its file exists."),
        .histogram(
            .chunkCommitSeconds, "kedge_chunk_commit_seconds", buckets: HistogramBuckets.operation,
            "Time to make the rows of chunks durable, after their bytes."),
        .histogram(
            .finalizeSeconds, "kedge_finalize_seconds", buckets: HistogramBuckets.operation,
            "Time to turn the verified bytes of a session into a file."),
        .counter(
            .quotaRefusals, "kedge_quota_refusals_total", labels: ["kind"],
            "Uploads refused by a quota; kind is stored_bytes, open_sessions or file_bytes."),
    ]

    private static let storeTable: [MetricDefinition] = [
        .histogram(
            .storeOperationSeconds, "kedge_store_operation_seconds",
            labels: ["store", "operation"], buckets: HistogramBuckets.operation,
            "Time of an operation on rows, with its wait; store is sqlite or postgres, operation "
                + "is write for transactions and read for the rest."),
        .counter(
            .storeRetries, "kedge_store_retries_total", labels: ["store"],
            "Operations on rows that ran again after a conflict or a lost connection."),
        .histogram(
            .syncSeconds, "kedge_fsync_seconds", buckets: HistogramBuckets.operation,
            "Time of a sync of a file or directory of the data directory, without the database."),
        .counter(
            .bucketRequests, "kedge_s3_requests_total", labels: ["operation", "status"],
            "Requests to the bucket; status is a class such as 2xx, or failed without an answer."),
        .histogram(
            .bucketRequestSeconds, "kedge_s3_request_seconds", labels: ["operation"],
            buckets: HistogramBuckets.operation,
            "Time of a request to the bucket, with the use of its answer."),
        .gauge(
            .storageFreeBytes, "kedge_storage_free_bytes", unit: .bytes,
            "Bytes that are free for uploads where bytes are kept or spooled."),
        .gauge(
            .storageReservedBytes, "kedge_storage_reserved_bytes", unit: .bytes,
            "Free bytes that request bodies in progress will use."),
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
