internal import GRDB
package import KedgeTransport

/// A request to change the limits of all running clients of the same records.
package struct BandwidthRequest: Sendable, Equatable {
    /// Grows with each request.
    package let number: Int64
    package let rates: BandwidthRates

    package init(number: Int64, rates: BandwidthRates) {
        self.number = number
        self.rates = rates
    }
}

extension TransferStore {
    /// Returns the last request; nil if there was none.
    package func bandwidthRequest() async throws -> BandwidthRequest? {
        try await reading("read limits") { database in
            try Row.fetchOne(
                database, sql: "SELECT number, upload, download FROM bandwidth_request"
            ).map { row in
                BandwidthRequest(
                    number: row["number"],
                    rates: BandwidthRates(
                        upload: row["upload"], download: row["download"]))
            }
        }
    }

    /// Requests other limits.
    package func requestBandwidth(_ rates: BandwidthRates) async throws {
        try await transaction("request limits") { database in
            try database.execute(
                sql: """
                    INSERT INTO bandwidth_request (id, number, upload, download)
                    VALUES (1, 1, :upload, :download)
                    ON CONFLICT (id) DO UPDATE SET number = number + 1,
                        upload = excluded.upload, download = excluded.download
                    """, arguments: ["upload": rates.upload, "download": rates.download])
        }
    }
}
