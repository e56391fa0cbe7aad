internal import KedgeCurl
package import KedgeFiles

/// The sources of credentials, in the order that AWS tools use.
package enum CredentialsChain {
    /// Returns a provider for the standard sources: environment, shared file, web identity,
    /// container endpoint, metadata service of the instance.
    ///
    /// - Parameter environment: The process's environment variables.
    package static func standard(
        environment: [String: String], region: String, pool: BlockingPool,
        fileSystem: any FileSystem = POSIXFileSystem(), clock: any WallClock = SystemWallClock()
    ) -> any CredentialsProvider {
        let files = SmallFiles(fileSystem: fileSystem, pool: pool)
        var direct = CurlClient.Configuration()
        // A proxy would query its own metadata service.
        direct.usesEnvironmentProxy = false
        direct.connectTimeout = .seconds(2)
        let near = CredentialsEndpointClient(http: CurlClient(configuration: direct))
        let far = CredentialsEndpointClient(http: CurlClient())
        return CredentialsCache(
            [
                EnvironmentCredentials(environment: environment),
                SharedFileCredentials(environment: environment, files: files),
                WebIdentityCredentials(
                    environment: environment, region: region, files: files, endpoint: far),
                ContainerCredentials(environment: environment, files: files, endpoint: near),
                InstanceCredentials(environment: environment, endpoint: near),
            ], clock: clock)
    }
}
