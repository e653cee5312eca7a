// A real authorization server on loopback, `oidc-provider` from npm. Arguments: its module, the secret of `machine` and
// `poster`, the public key of `signer` as a JWK, and the seconds for which tokens of people are good.
// It prints its port, and `/log` tells what it granted, refused and was asked for on the way since the last time.
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const [module, secret, key, seconds] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(module));
const machine = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
const person = {
  application_type: 'native',
  grant_types: ['authorization_code', 'refresh_token'],
  redirect_uris: ['http://127.0.0.1/callback'], // with any port (RFC 8252, section 7.3)
  token_endpoint_auth_method: 'none',
};
const described = 'https://keval.example/client.json';

console.info = () => {}; // of what a server in production must have otherwise

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [
      { ...machine, client_id: 'machine', client_secret: secret },
      { ...machine, client_id: 'poster', client_secret: secret, token_endpoint_auth_method: 'client_secret_post' },
      {
        ...machine,
        client_id: 'signer',
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'ES256',
        jwks: { keys: [JSON.parse(key)] },
      },
      { ...person, client_id: 'known' },
    ],
    features: {
      clientCredentials: { enabled: true },
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx, resource) => ({
          scope: 'read admin',
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: ctx.oidc.params.grant_type === 'client_credentials' ? 600 : Number(seconds),
        }),
      },
    },
    // Nothing leaves loopback: this is what keval.example would say.
    fetch: async (url) => Response.json({ ...person, client_id: `${url}`, client_name: 'keval' }),
    cookies: { keys: ['k'] },
  });
  let log = [];
  provider.on('grant.success', ({ oidc: { params } }) => log.push(`${params.grant_type} ${params.resource}`));
  provider.on('grant.error', ({ oidc: { params } }, error) => log.push(`${params?.grant_type}: ${error.error_description}`));
  provider.on('authorization.error', (ctx, error) => log.push(`page: ${error.error_description}`));
  provider.on('authorization.success', ({ oidc: { params } }) => log.push(`page for ${params.scope}`));
  provider.on('registration_create.success', () => log.push('registered'));
  provider.on('registration_create.error', (ctx, error) => log.push(`not registered: ${error.error_description}`));
  const answer = provider.callback();
  server.on('request', (request, response) => {
    if (request.url !== '/log') return answer(request, response);
    response.end(JSON.stringify(log));
    log = [];
  });
  console.log(port);
});
