//! The operator's server that takes mail: one connection for each attempt, and what its answers mean.

use std::{error::Error as _, io};

use anyhow::Context as _;
use lettre::{
    Address,
    transport::smtp::{
        Error,
        authentication::{Credentials, Mechanism},
        client::{AsyncSmtpConnection, Certificate, TlsParameters},
        commands::{Data, Mail, Rcpt, Rset},
        extension::ClientId,
    },
};
use runtime::config::{Smtp, SmtpEncryption};

use crate::metrics;

/// Replies to a recipient that does not exist, or takes no mail any more (RFC 3463). Without such a code the reply may be
/// about our server or the message.
const NO_SUCH_RECIPIENT: &[&str] = &["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"];

pub(super) struct Server {
    host: String,
    port: u16,
    encryption: SmtpEncryption,
    tls: TlsParameters,
    login: Option<Credentials>,
    hello: ClientId,
}

/// An open connection.
pub(super) struct Session(AsyncSmtpConnection);

/// Reply of the server to a recipient or a mail.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Another attempt may succeed.
    Passing,
    /// The server does not take this mail.
    Permanent,
    /// The recipient does not exist.
    NoSuchRecipient,
}

/// A mail that the server has not taken, as far as we know.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: Kind,
    /// Word for the delivery log, if there was no reply about this mail.
    pub(super) word: Option<&'static str>,
    pub(super) reply: Option<Reply>,
}

impl Server {
    pub(super) fn new(settings: &Smtp, domain: &str) -> anyhow::Result<Self> {
        let mut tls = TlsParameters::builder(settings.server.clone());
        for certificate in settings.authorities()? {
            let certificate = Certificate::from_der(certificate);
            tls = tls.add_root_certificate(certificate.context("a certificate authority")?);
        }
        let login = settings.login();
        Ok(Self {
            host: settings.server.clone(),
            port: settings.port,
            encryption: settings.encryption,
            tls: tls.build_rustls().context("dispatcher.smtp")?,
            login: login
                .map(|(user, password)| Credentials::new(user.to_owned(), password.to_owned())),
            hello: ClientId::Domain(settings.hello_name.as_deref().unwrap_or(domain).to_owned()),
        })
    }

    pub(super) async fn open(&self) -> Result<Session, Failure> {
        let server = (self.host.as_str(), self.port);
        let tls = match self.encryption {
            SmtpEncryption::Tls => Some(self.tls.clone()),
            SmtpEncryption::StartTls | SmtpEncryption::Plain => None,
        };
        let connected =
            AsyncSmtpConnection::connect_tokio1(server, None, &self.hello, tls, None).await;
        let mut connection = connected.map_err(|error| of_server(&error, "smtp_unavailable"))?;
        if self.encryption == SmtpEncryption::StartTls {
            let secured = connection.starttls(self.tls.clone(), &self.hello).await;
            secured.map_err(|error| of_server(&error, "tls_failure"))?;
        }
        if let Some(login) = &self.login {
            let mechanisms = [Mechanism::Plain, Mechanism::Login];
            let answer = connection.auth(&mechanisms, login).await;
            answer.map_err(|error| of_server(&error, "smtp_login_refused"))?;
        }
        Ok(Session(connection))
    }
}

impl Session {
    /// Sends one mail. If the reply to its last byte is lost, the server may have taken it nevertheless.
    pub(super) async fn send(
        &mut self,
        from: &Address,
        to: &Address,
        message: &[u8],
    ) -> Result<Reply, Failure> {
        let connection = &mut self.0;
        let mail = Mail::new(Some(from.clone()), Vec::new());
        let answer = connection.command(mail).await;
        answer.map_err(|error| of_server(&error, "smtp_unavailable"))?;
        let answer = connection.command(Rcpt::new(to.clone(), Vec::new())).await;
        answer.map_err(|error| of_recipient(&error))?;
        let answer = connection.command(Data).await;
        answer.map_err(|error| of_mail(&error))?;
        let answer = connection.message(message).await;
        let answer = answer.map_err(|error| of_mail(&error))?;
        let text: Vec<&str> = answer.message().collect();
        Ok(Reply {
            status: answer.code().into(),
            text: text.join(" "),
        })
    }

    /// Makes the connection usable after a failure. Returns false if it is not.
    pub(super) async fn reset(&mut self) -> bool {
        self.0.command(Rset).await.is_ok()
    }

    pub(super) async fn close(mut self) {
        let _ = self.0.quit().await;
    }
}

/// A failure before the server knew the recipient. It is the operator's to solve, so customers learn only a word.
fn of_server(error: &Error, word: &'static str) -> Failure {
    tracing::warn!("the mail server cannot be used: {error}");
    let cause = { error.source() }.and_then(|cause| cause.downcast_ref::<io::Error>());
    let is_refused = cause.is_some_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused);
    let word = match word {
        _ if is_refused => "connect_refused",
        _ if error.is_tls() => "tls_failure",
        _ if error.is_timeout() => "timeout",
        word => word,
    };
    metrics::MAIL_FAILURES.with_label_values(&[word]).inc();
    Failure {
        kind: Kind::Passing,
        word: Some(word),
        reply: None,
    }
}

fn of_recipient(error: &Error) -> Failure {
    let mut failure = of_mail(error);
    let reply = failure.reply.as_ref();
    let code = reply.and_then(|reply| reply.text.split_whitespace().next());
    if failure.kind == Kind::Permanent && code.is_some_and(|code| NO_SUCH_RECIPIENT.contains(&code))
    {
        failure.kind = Kind::NoSuchRecipient;
    }
    failure
}

fn of_mail(error: &Error) -> Failure {
    let kind = if error.is_permanent() {
        Kind::Permanent
    } else {
        Kind::Passing
    };
    let reply = error.status().map(|code| Reply {
        status: code.into(),
        text: error.source().map(ToString::to_string).unwrap_or_default(),
    });
    let word = match &reply {
        Some(_) => None,
        None if error.is_timeout() => Some("timeout"),
        None if error.is_response() => Some("protocol_error"),
        None => Some("reset"),
    };
    Failure { kind, word, reply }
}
