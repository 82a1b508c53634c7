//! `/control`: the API for tests that control the simulator.
//!
//! - `POST /posts` takes a list of [`NewPost`] and returns a list of [`super::Published`]; `DELETE /posts/{id}`
//!   deletes one.
//! - `POST /faults` takes a [`Fault`].
//! - `GET /requests` returns the number of requests by path, `GET /served` by `Post.id` the microsecond at
//!   which each post was first part of a response.
//! - `POST /streams/cut` closes all streams.
//! - `POST /reset` forgets everything; numbers continue, so that ids stay unique.

use actix_web::{HttpResponse, Responder, web};

use super::{faults::Fault, kinds, post::NewPost, world::World};

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/posts", web::post().to(publish))
        .route("/posts/{id}", web::delete().to(delete))
        .route("/faults", web::post().to(fail))
        .route("/requests", web::get().to(requests))
        .route("/served", web::get().to(served))
        .route("/streams/cut", web::post().to(cut))
        .route("/reset", web::post().to(reset));
}

async fn publish(world: web::Data<World>, posts: web::Json<Vec<NewPost>>) -> impl Responder {
    let known = |post: &NewPost| {
        let name = post.platform.as_str();
        kinds::answer_of(name).is_some() || name.starts_with("feed:")
    };
    match posts.iter().find(|post| !known(post)) {
        Some(post) => HttpResponse::BadRequest().body(format!(
            "unknown platform `{}`: a kind other than `feed`, or feed:<name>\n",
            post.platform
        )),
        None => HttpResponse::Ok().json(world.publish(posts.into_inner())),
    }
}

async fn delete(world: web::Data<World>, id: web::Path<u64>) -> impl Responder {
    if world.delete(*id) {
        HttpResponse::NoContent()
    } else {
        HttpResponse::NotFound()
    }
}

async fn fail(world: web::Data<World>, fault: web::Json<Fault>) -> impl Responder {
    world.faults.add(fault.into_inner());
    HttpResponse::NoContent()
}

async fn requests(world: web::Data<World>) -> impl Responder {
    web::Json(world.requests())
}

async fn served(world: web::Data<World>) -> impl Responder {
    web::Json(world.served())
}

async fn cut(world: web::Data<World>) -> impl Responder {
    world.jetstream.cut(None);
    HttpResponse::NoContent()
}

async fn reset(world: web::Data<World>) -> impl Responder {
    world.reset();
    HttpResponse::NoContent()
}
