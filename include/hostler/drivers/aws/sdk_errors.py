"""What errors mean that the SDK raises by itself, before or instead of an answer. Codes of answers: ``catalog.error_rules.aws``."""

from typing import Final

from hostler.cloud.errors import CloudAuthError, CloudConfigError, CloudError

SDK_ERRORS: Final[dict[str, type[CloudError]]] = {
    "NoCredentialsError": CloudAuthError,
    "PartialCredentialsError": CloudAuthError,
    "CredentialRetrievalError": CloudAuthError,
    "TokenRetrievalError": CloudAuthError,
    "NoAuthTokenError": CloudAuthError,
    "SSOError": CloudAuthError,
    "LoginError": CloudAuthError,
    "ProfileNotFound": CloudAuthError,
    "MetadataRetrievalError": CloudAuthError,
    "ParamValidationError": CloudConfigError,
    "ValidationError": CloudConfigError,
    "MissingParametersError": CloudConfigError,
    "NoRegionError": CloudConfigError,
    "BaseEndpointResolverError": CloudConfigError,
    "EndpointProviderError": CloudConfigError,
    "InvalidConfigError": CloudConfigError,
    "InvalidProxiesConfigError": CloudConfigError,
}
"""Name of a class of botocore, or of one that it derives from -> what it means. All are raised before anything is sent.
Source: botocore 1.44, exceptions.py.
"""

UNSENT: Final = ("EndpointConnectionError", "ConnectTimeoutError", "ProxyConnectionError")
"""The connection never came about, so the call had no effect. Source: botocore 1.44, httpsession.py ``send``."""
